/// Collects the lines of a Swift file.
struct SwiftText {
  private(set) var text = ""
  private var depth = 0

  mutating func line(_ line: String) {
    text += line.isEmpty ? "\n" : String(repeating: "  ", count: depth) + line + "\n"
  }

  mutating func blank() { text += "\n" }

  mutating func block(_ head: String, _ body: (inout SwiftText) throws -> Void) rethrows {
    line(head + " {")
    depth += 1
    try body(&self)
    depth -= 1
    line("}")
  }

  /// A doc comment, in lines of at most 120 columns. Paragraphs are separated by an empty line.
  mutating func documentation(_ comment: String) {
    let paragraphs = comment.split(separator: "\n\n", omittingEmptySubsequences: true)
    for (number, paragraph) in paragraphs.enumerated() {
      if number > 0 { line("///") }
      var current = "///"
      for word in paragraph.split(whereSeparator: \.isWhitespace) {
        if current.count + word.count + 1 + 2 * depth > 120 {
          line(current)
          current = "///"
        }
        current += " " + word
      }
      line(current)
    }
  }
}

extension String {
  /// `page-reports` becomes `pageReports`.
  var camelCased: String {
    let parts = split { "-_ /".contains($0) }
    return parts.enumerated().map {
      $0.offset == 0 ? String($0.element) : $0.element.prefix(1).uppercased() + $0.element.dropFirst()
    }
    .joined()
  }
}
