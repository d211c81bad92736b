import Foundation
import Yams

/// The OpenAPI document, in the order in which it is written.
struct Document {
  private let root: Node

  init(yaml: String) throws {
    guard let root = try Yams.compose(yaml: yaml) else { throw Fault("the document is empty") }
    self.root = root
    let head = yaml[..<(yaml.firstRange(of: "\nopenapi:")?.lowerBound ?? yaml.startIndex)]
    let table = Set(head.matches(of: /`(x-[a-z]+)` *\|/).map { String($0.1) })
    try Self.check(root, in: "the document", for: table)
  }

  /// A key of our own that the head of the document does not explain is a typing error: nothing would read it.
  private static func check(_ node: Node, in place: String, for table: Set<String>) throws {
    for (key, value) in node.entries {
      guard !key.hasPrefix("x-") || table.contains(key) else {
        throw Fault("\(place): `\(key)` is not in the table at the head of the document")
      }
      try check(value, in: key, for: table)
    }
    for value in node.sequence ?? [] { try check(value, in: place, for: table) }
  }

  /// The value at a path of keys, such as `["components", "schemas"]`.
  func entries(_ path: String...) -> [(name: String, node: Node)] {
    path.reduce(root as Node?) { $0?[$1] }?.entries ?? []
  }

  /// The node itself, or what its `$ref` leads to.
  func resolved(_ node: Node) throws -> Node {
    guard let reference = node["$ref"]?.string else { return node }
    let path = reference.split(separator: "/").dropFirst()
    guard let found = path.reduce(root as Node?, { $0?[String($1)] }) else {
      throw Fault("\(reference) leads nowhere")
    }
    return try resolved(found)
  }

  /// The operations, by their ids.
  func operations() throws -> [Operation] {
    let methods = ["get", "put", "post", "patch", "delete"]
    var all: [Operation] = []
    for (path, item) in entries("paths") {
      for (method, node) in item.entries where methods.contains(method) {
        all.append(try Operation(method, path, node, of: item, in: self))
      }
    }
    let ids = Set(all.map(\.id))
    guard ids.count == all.count else { throw Fault("two operations have one operationId") }
    return all.sorted { $0.id < $1.id }
  }

  /// Whether operations need a token unless they say otherwise.
  var security: Node? { root["security"] }
}

/// A fault of the document, which ends the program.
struct Fault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

extension Node {
  /// The members of a mapping, in order.
  var entries: [(name: String, node: Node)] {
    mapping?.compactMap { key, value in key.string.map { ($0, value) } } ?? []
  }

  /// The texts of a sequence, or of a single one.
  var texts: [String] { sequence?.compactMap(\.string) ?? string.map { [$0] } ?? [] }

  /// True for a plain `null`, not for the text.
  var isNull: Bool { tag == Tag(.null) || null != nil && string != "null" }
}
