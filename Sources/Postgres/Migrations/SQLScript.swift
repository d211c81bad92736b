/// Splits a script into statements, for messages only. The server does its own splitting when it runs a script.
enum SQLScript {
  /// The statements, without comments. A BEGIN ATOMIC body counts as several.
  static func statements(of script: String) -> [String] {
    var statements: [String] = []
    var rest = Substring(script)
    var current = ""
    func end() {
      if !current.allSatisfy(\.isWhitespace) { statements.append(current) }
      current = ""
    }
    while let character = rest.first {
      if character == ";" {
        end()
        rest.removeFirst()
      } else if let comment = comment(at: rest) {
        current += " "
        rest = rest[comment...]
      } else if let quoted = quoted(at: rest, after: current.last) {
        current += rest[..<quoted]
        rest = rest[quoted...]
      } else {
        current.append(character)
        rest.removeFirst()
      }
    }
    end()
    return statements
  }

  /// The start of a statement, on one line.
  static func summary(of statement: String) -> String {
    let line = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return line.count <= 80 ? line : line.prefix(77) + "..."
  }

  /// The end of the comment that begins here, if any.
  private static func comment(at text: Substring) -> String.Index? {
    if text.hasPrefix("--") { return text.firstIndex(where: \.isNewline) ?? text.endIndex }
    guard text.hasPrefix("/*") else { return nil }
    var depth = 0
    var rest = text
    while !rest.isEmpty {
      if rest.hasPrefix("/*") || rest.hasPrefix("*/") {
        depth += rest.first == "/" ? 1 : -1
        rest.removeFirst(2)
        if depth == 0 { break }
      } else {
        rest.removeFirst()
      }
    }
    return rest.startIndex
  }

  /// The end of the string, quoted name or dollar-quoted body that begins here, if any.
  ///
  /// - Parameter before: the preceding character. E'...' has escapes, and a dollar sign inside a name begins no quote.
  private static func quoted(at text: Substring, after before: Character?) -> String.Index? {
    guard let quote = text.first else { return nil }
    switch quote {
    case "'", "\"":
      var rest = text.dropFirst()
      while let character = rest.first {
        rest.removeFirst()
        if character == "\\", quote == "'", before == "E" || before == "e" { rest = rest.dropFirst() }
        // A doubled quote stands for itself. Parsing it as two adjacent strings gives the same end.
        if character == quote { break }
      }
      return rest.startIndex
    case "$" where before.map { !($0.isLetter || $0.isNumber || $0 == "_") } ?? true:
      guard let close = text.dropFirst().firstIndex(of: "$"),
        text[..<close].dropFirst().allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" })
      else { return nil }
      let tag = text[...close]
      return text[close...].dropFirst().firstRange(of: tag)?.upperBound ?? text.endIndex
    default: return nil
    }
  }
}
