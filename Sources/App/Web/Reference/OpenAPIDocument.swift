import Yams

/// The OpenAPI document as a tree, whose members keep their order.
struct OpenAPIDocument {
  let root: JSON

  init(yaml text: String) throws {
    guard let node = try Yams.compose(yaml: text) else { throw Empty() }
    root = Self.json(node)
  }

  private struct Empty: Error {}

  private static func json(_ node: Node) -> JSON {
    switch node {
    case .scalar(let scalar): return scalar.style == .plain ? plain(scalar.string) : .string(scalar.string)
    case .sequence(let items): return .array(items.map { json($0) })
    case .mapping(let members):
      var object = JSON.Object()
      for (name, value) in members { _ = object.insert(json(value), forKey: name.scalar?.string ?? "") }
      return .object(object)
    // The parser replaces aliases by what they stand for.
    case .alias: return .null
    }
  }

  private static func plain(_ text: String) -> JSON {
    switch text {
    case "null": .null
    case "true": .bool(true)
    case "false": .bool(false)
    default: text.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?/) == nil ? .string(text) : .number(text)
    }
  }

  /// Follows a reference.
  func resolved(_ value: JSON) -> JSON {
    let reference = value.member("$ref").text
    guard !reference.isEmpty else { return value }
    return resolved(reference.dropFirst("#/".count).split(separator: "/").reduce(root) { $0.member(String($1)) })
  }
}

extension JSON {
  /// Null if there is no such member.
  func member(_ name: String) -> JSON {
    if case .object(let members) = self { members[name] ?? .null } else { .null }
  }

  /// Those of an object, in order.
  var members: [(key: String, value: JSON)] {
    if case .object(let members) = self { Array(members) } else { [] }
  }

  /// Those of an array.
  var elements: [JSON] {
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
