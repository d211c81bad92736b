extension Tree {
  /// JSON on one line, as people write it.
  var line: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number(let digits): digits
    case .string(let text): Self.quoted(text)
    case .array(let elements): "[" + elements.map(\.line).joined(separator: ", ") + "]"
    case .object(let members):
      "{" + members.map { "\(Self.quoted($0.key)): \($0.value.line)" }.joined(separator: ", ") + "}"
    }
  }

  /// On several lines. An array or object that fits on one line stays on it.
  ///
  /// - Parameter indent: the column of the first line.
  func lines(indent: Int = 0) -> String {
    let line = self.line
    let (margin, end) = ("\n" + String(repeating: " ", count: indent + 2), "\n" + String(repeating: " ", count: indent))
    if indent + line.count <= Self.lineLength { return line }
    switch self {
    case .array(let elements):
      return "[" + elements.map { margin + $0.lines(indent: indent + 2) }.joined(separator: ",") + end + "]"
    case .object(let members):
      let lines = members.map { "\(margin)\(Self.quoted($0.key)): \($0.value.lines(indent: indent + 2))" }
      return "{" + lines.joined(separator: ",") + end + "}"
    default: return line
    }
  }

  /// Nil for anything but a string.
  var stringValue: String? {
    if case .string(let text) = self { text } else { nil }
  }

  private static let lineLength = 88

  private static func quoted(_ text: String) -> String {
    var json = "\"".unicodeScalars
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": json += ["\\", scalar]
      case "\n": json += "\\n".unicodeScalars
      case "\r": json += "\\r".unicodeScalars
      case "\t": json += "\\t".unicodeScalars
      default: json.append(scalar)
      }
    }
    json.append("\"")
    return String(json)
  }
}
