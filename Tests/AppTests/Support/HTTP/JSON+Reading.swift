@testable import App

extension JSON {
  subscript(name: String) -> JSON {
    if case .object(let members) = self { return members[name] ?? .null }
    return .null
  }

  subscript(index: Int) -> JSON {
    array.indices.contains(index) ? array[index] : .null
  }

  var array: [JSON] {
    if case .array(let elements) = self { return elements }
    return []
  }

  var string: String? {
    if case .string(let text) = self { return text }
    return nil
  }

  var int: Int? {
    if case .number(let text) = self { return Int(text) }
    return nil
  }

  var bool: Bool? {
    if case .bool(let value) = self { return value }
    return nil
  }

  /// Those of an object, in order.
  var members: [(key: String, value: JSON)] {
    if case .object(let members) = self { Array(members) } else { [] }
  }

  var keys: Set<String> {
    if case .object(let members) = self { return Set(members.keys) }
    return []
  }
}
