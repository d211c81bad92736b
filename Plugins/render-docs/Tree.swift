/// A value of the OpenAPI document. Members keep their order.
enum Tree: Equatable {
  case null
  case bool(Bool)
  /// The digits, as the document has them.
  case number(String)
  case string(String)
  case array([Tree])
  case object([Member])

  struct Member: Equatable {
    let key: String
    let value: Tree
  }

  /// Null if there is no such member.
  func member(_ name: String) -> Tree {
    if case .object(let members) = self { members.first { $0.key == name }?.value ?? .null } else { .null }
  }

  /// Those of an object, in order.
  var members: [(key: String, value: Tree)] {
    if case .object(let members) = self { members.map { ($0.key, $0.value) } } else { [] }
  }

  /// Those of an array.
  var elements: [Tree] {
    if case .array(let elements) = self { elements } else { [] }
  }

  /// A string or a number as text. Empty for anything else.
  var text: String {
    switch self {
    case .string(let text), .number(let text): text
    default: ""
    }
  }
}
