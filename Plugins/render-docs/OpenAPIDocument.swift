import Yams

/// The OpenAPI document as a tree, whose members keep their order.
struct OpenAPIDocument {
  let root: Tree

  init(yaml text: String) throws {
    guard let node = try Yams.compose(yaml: text) else { throw Empty() }
    root = Self.tree(node)
  }

  private struct Empty: Error {}

  private static func tree(_ node: Node) -> Tree {
    switch node {
    case .scalar(let scalar): return scalar.style == .plain ? plain(scalar.string) : .string(scalar.string)
    case .sequence(let items): return .array(items.map { tree($0) })
    case .mapping(let members):
      return .object(members.map { Tree.Member(key: $0.key.scalar?.string ?? "", value: tree($0.value)) })
    // The parser replaces aliases by what they stand for.
    case .alias: return .null
    }
  }

  private static func plain(_ text: String) -> Tree {
    switch text {
    case "null": .null
    case "true": .bool(true)
    case "false": .bool(false)
    default: text.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?/) == nil ? .string(text) : .number(text)
    }
  }

  /// Follows a reference.
  func resolved(_ value: Tree) -> Tree {
    let reference = value.member("$ref").text
    guard !reference.isEmpty else { return value }
    return resolved(reference.dropFirst("#/".count).split(separator: "/").reduce(root) { $0.member(String($1)) })
  }
}
