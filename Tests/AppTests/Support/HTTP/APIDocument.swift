import Foundation
import Postgres

@testable import App

/// The OpenAPI document, to check responses against it.
struct APIDocument: Sendable {
  static let published = try? APIDocument()

  /// By the number of their segments.
  private let paths: [Int: [Path]]
  private let components: APISchema.Components

  private struct Path: Sendable {
    let segments: [Substring]
    /// The schemas of the responses by method, status and type.
    let operations: [String: [String: [String: APISchema.Reference]]]

    var parameters: Int { segments.count { $0.hasPrefix("{") } }
  }

  init() throws {
    let root = try JSON(parsing: Resources.openAPIJSON.utf8)
    guard case .object(let items) = root["paths"], case .object(let schemas) = root["components"]["schemas"] else {
      throw Unreadable()
    }
    func resolved(_ value: JSON) -> JSON {
      guard let reference = value["$ref"].string else { return value }
      return resolved(reference.dropFirst(2).split(separator: "/").reduce(root) { $0[String($1)] })
    }
    components = try Dictionary(
      uniqueKeysWithValues: schemas.map { name, schema in
        ("#/components/schemas/\(name)", try APISchema(resolved(schema), resolved: resolved))
      })
    let paths = try items.map { path, item in
      var operations: [String: [String: [String: APISchema.Reference]]] = [:]
      for (method, operation) in item.members where method != "parameters" {
        operations[method] = [:]
        for (status, response) in operation["responses"].members {
          operations[method]?[status] = [:]
          for (type, content) in resolved(response)["content"].members {
            guard case .object = content["schema"] else { continue }
            operations[method]?[status]?[type] = try APISchema.reference(content["schema"], resolved)
          }
        }
      }
      return Path(segments: path.split(separator: "/"), operations: operations)
    }
    self.paths = Dictionary(grouping: paths, by: \.segments.count)
  }

  private struct Unreadable: Error {}

  /// The faults of a response: members, values and headers that the document does not allow.
  ///
  /// - Parameter path: with or without a query.
  func faults(in sent: APIResponse, to method: String, _ path: String) -> [String] {
    let method = method == "HEAD" ? "get" : method.lowercased()
    guard let operation = self.path(path.prefix { $0 != "?" })?.operations[method], sent.status != 405 else {
      return []
    }
    guard let response = operation[String(sent.status)] else {
      return ["the status \(sent.status) is not documented"]
    }
    let type = sent.header("Content-Type").map { String($0.prefix { $0 != ";" }) }
    guard !sent.body.isEmpty, let type else { return [] }
    guard let schema = response[type] else { return ["the type \(type) is not documented for \(sent.status)"] }
    guard type.hasSuffix("json") else { return [] }
    return APISchema.faults(in: sent.json, schema, components)
  }

  /// A literal segment wins over a parameter, as in the router.
  private func path(_ path: Substring) -> Path? {
    let segments = path.split(separator: "/")
    let matching = paths[segments.count, default: []].filter { known in
      zip(known.segments, segments).allSatisfy { $0 == $1 || $0.hasPrefix("{") }
    }
    return matching.min { $0.parameters < $1.parameters }
  }
}
