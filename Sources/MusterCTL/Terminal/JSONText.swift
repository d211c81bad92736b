import MusterKit

/// Writes JSON that is safe to print: no character of it controls a terminal.
enum JSONText {
  /// Members are in alphabetical order.
  ///
  /// - Parameter isIndented: false writes one line.
  static func of(_ value: JSONValue, isIndented: Bool = true) -> String {
    text(of: value, indent: isIndented ? "\n" : nil)
  }

  /// - Parameter indent: a line feed and the spaces before the value's last line; nil for one line.
  private static func text(of value: JSONValue, indent: String?) -> String {
    switch value {
    case .null: return "null"
    case .bool(let value): return "\(value)"
    case .integer(let value): return "\(value)"
    case .double(let value): return "\(value)"
    case .string(let text): return quoted(text)
    case .array(let items):
      let inner = indent.map { $0 + "  " }
      return enclosed("[", items.map { text(of: $0, indent: inner) }, "]", indent)
    case .object(let members):
      let inner = indent.map { $0 + "  " }
      let space = indent == nil ? "" : " "
      let sorted = members.sorted { $0.key < $1.key }
      return enclosed("{", sorted.map { "\(quoted($0.key)):\(space)\(text(of: $0.value, indent: inner))" }, "}", indent)
    }
  }

  private static func enclosed(_ start: String, _ parts: [String], _ end: String, _ indent: String?) -> String {
    guard let indent, !parts.isEmpty else { return start + parts.joined(separator: ",") + end }
    return start + parts.map { "\(indent)  \($0)" }.joined(separator: ",") + indent + end
  }

  private static func quoted(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "\"") { json, scalar in
      switch scalar {
      case "\"", "\\":
        json += "\\"
        json.unicodeScalars.append(scalar)
      case "\n": json += "\\n"
      case _ where scalar.isSafe: json.unicodeScalars.append(scalar)
      default:
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      }
    } + "\""
  }
}

extension JSONValue {
  /// Some members of a model, as the service writes them.
  static func members(_ names: String..., of model: some Encodable) -> JSONValue {
    let all = try? JSONValue(encoding: model)
    return .object(Dictionary(uniqueKeysWithValues: names.map { ($0, all?[$0] ?? .null) }))
  }
}
