import Foundation

/// An `.env` file with `NAME=value` lines, as shells and Docker read them. Single quotes keep a value as it is; in
/// double quotes, a backslash escapes. A quoted value may span several lines. `export` before a name, comments and CRLF
/// are allowed.
struct EnvironmentFile {
  private(set) var values: [String: String] = [:]

  /// - Throws: ``MusterConfiguration/Problem`` with the line's number, but without its content, which may be secret.
  init(parsing text: String, name: String) throws(MusterConfiguration.Problem) {
    let scalars = Array(text.unicodeScalars.filter { $0 != "\u{feff}" })
    var rest = scalars[...]
    var start = 0

    func problem(_ what: String) -> MusterConfiguration.Problem {
      MusterConfiguration.Problem("\(name), line \(1 + scalars[..<start].count { $0 == "\n" }): \(what)")
    }
    func takeLine() -> String {
      let line = rest.prefix { $0 != "\n" }
      rest = rest.dropFirst(line.count + 1)
      return String(String.UnicodeScalarView(line))
    }

    while !rest.isEmpty {
      start = rest.startIndex
      let head = rest.prefix { $0 != "=" && $0 != "\n" }
      let isAssignment = rest.dropFirst(head.count).first == "="
      var key = String(String.UnicodeScalarView(head)).trimmingCharacters(in: .whitespacesAndNewlines)
      if key.hasPrefix("#") || key.isEmpty && !isAssignment {
        _ = takeLine()
        continue
      }
      if key.hasPrefix("export "), let name = key.split(separator: " ").last { key = String(name) }
      guard isAssignment, key.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil else {
        throw problem("expected NAME=value")
      }
      rest = rest.dropFirst(head.count + 1)
      let isSpaced = rest.first == " " || rest.first == "\t"
      rest = rest.drop { $0 == " " || $0 == "\t" }
      guard let quote = rest.first, quote == "\"" || quote == "'" else {
        let value = takeLine()
        // A comment needs a space before it.
        let comment = isSpaced && value.hasPrefix("#") ? value.startIndex : value.firstRange(of: /[ \t]#/)?.lowerBound
        let end = comment ?? value.endIndex
        values[key] = value[..<end].trimmingCharacters(in: .whitespacesAndNewlines)
        continue
      }
      rest = rest.dropFirst()
      guard let value = Self.quoted(by: quote, &rest) else { throw problem("a quote is not closed") }
      values[key] = value
      let after = takeLine().trimmingCharacters(in: .whitespacesAndNewlines)
      guard after.isEmpty || after.hasPrefix("#") else { throw problem("unexpected text after the closing quote") }
    }
  }

  /// - Returns: nil if the quote is not closed.
  private static func quoted(by quote: Unicode.Scalar, _ rest: inout ArraySlice<Unicode.Scalar>) -> String? {
    var value = String.UnicodeScalarView()
    while let scalar = rest.popFirst() {
      if scalar == quote { return String(value) }
      guard scalar == "\\", quote == "\"", let next = rest.popFirst() else {
        if scalar != "\r" { value.append(scalar) }
        continue
      }
      value.append(["n": "\n", "r": "\r", "t": "\t"][next] ?? next)
    }
    return nil
  }
}
