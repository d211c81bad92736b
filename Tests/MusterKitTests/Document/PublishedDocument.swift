import Foundation
import TestSupport
import Testing
import Yams

/// The OpenAPI document in the sources of the service.
struct PublishedDocument {
  typealias Node = [String: Any]

  static let methods = ["get", "post", "put", "patch", "delete"]
  private static let base = "/api/v1"

  private let root: Node

  init() throws {
    let file = Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml")
    let text = try String(contentsOf: file, encoding: .utf8)
    // Times stay text.
    root = try #require(try Yams.load(yaml: text, Resolver.default.removing(.timestamp)) as? Node)
  }

  /// The operations of the API, without the pages and files around it. The path is below `/api/v1`.
  func operations() throws -> [(method: String, path: String, node: Node)] {
    let paths = try #require(root["paths"] as? [String: Node])
    return paths.filter { $0.key.hasPrefix(Self.base + "/") }.flatMap { path, item in
      Self.methods.compactMap { method -> (method: String, path: String, node: Node)? in
        guard var node = item[method] as? Node else { return nil }
        let shared = item["parameters"] as? [Node] ?? []
        node["parameters"] = shared + (node["parameters"] as? [Node] ?? [])
        return (method, String(path.dropFirst(Self.base.count)), node)
      }
    }
  }

  func resolved(_ node: Node) throws -> Node {
    guard let reference = node["$ref"] as? String else { return node }
    return try reference.split(separator: "/").dropFirst().reduce(root) { node, name in
      try #require(node[String(name)] as? Node, "\(reference)")
    }
  }

  /// The media types of an operation's responses, with their examples.
  func responses(of operation: Node) throws -> [(status: String, type: String, examples: [Any])] {
    let responses = operation["responses"] as? Node ?? [:]
    return try responses.sorted { $0.key < $1.key }.flatMap { status, response in
      let content = try resolved(try #require(response as? Node))["content"] as? Node ?? [:]
      return try content.map { type, media in
        let media = try #require(media as? Node)
        let named = (media["examples"] as? Node ?? [:]).sorted { $0.key < $1.key }.compactMap { _, example in
          (example as? Node)?["value"]
        }
        return (status, type, named + [media["example"]].compactMap { $0 })
      }
    }
  }

  /// The members that an object of a schema may have; nil for any.
  func members(of schema: Node) throws -> Set<String>? {
    let schema = try resolved(schema)
    if schema["additionalProperties"] is Node { return nil }
    let parts = ["allOf", "oneOf", "anyOf"].flatMap { schema[$0] as? [Node] ?? [] }
    var members = Set((schema["properties"] as? Node ?? [:]).keys)
    for part in parts {
      guard let more = try self.members(of: part) else { return nil }
      members.formUnion(more)
    }
    return members
  }
}
