import Foundation

/// The rules of requests, from the OpenAPI document, so that previews refuse what the service refuses:
/// `{"bodies": {"POST /events": schema, ...}, "queries": {"GET /friends": schema, ...}, "schemas": {name: schema}}`.
/// The schema of a query is an object with its parameters.
struct ExportedRules {
  static let file = "rules.json"
  private static let base = "/api/v1"

  private let document: JSON
  private var bodies = JSON.Object()
  private var queries = JSON.Object()

  /// - Parameter document: the OpenAPI document.
  init(_ document: JSON) {
    self.document = document
    for (path, operations) in document["paths"].pairs where path.hasPrefix(Self.base) {
      for (method, operation) in operations.pairs {
        let route = "\(method.uppercased()) \(path.dropFirst(Self.base.count))"
        let body = operation["requestBody"]["content"]["application/json"]["schema"]
        if case .object = body { _ = bodies.insert(Self.bare(body), forKey: route) }
        let query = query(of: operations["parameters"].list + operation["parameters"].list)
        if let query { _ = queries.insert(query, forKey: route) }
      }
    }
  }

  var json: JSON {
    var schemas = JSON.Object()
    for (name, schema) in document["components"]["schemas"].pairs {
      _ = schemas.insert(Self.bare(schema), forKey: name)
    }
    var json = JSON.Object()
    for (name, members) in [("bodies", bodies), ("queries", queries), ("schemas", schemas)] {
      _ = json.insert(.object(members), forKey: name)
    }
    return .object(json)
  }

  private func query(of parameters: [JSON]) -> JSON? {
    var members = JSON.Object()
    for parameter in parameters.map(resolved) {
      guard case .string("query") = parameter["in"], case .string(let name) = parameter["name"] else { continue }
      _ = members.insert(Self.bare(parameter["schema"]), forKey: name)
    }
    guard !members.keys.isEmpty else { return nil }
    var schema = JSON.Object()
    _ = schema.insert(.string("object"), forKey: "type")
    _ = schema.insert(.object(members), forKey: "properties")
    return .object(schema)
  }

  private func resolved(_ value: JSON) -> JSON {
    guard case .string(let reference) = value["$ref"] else { return value }
    return reference.split(separator: "/").dropFirst().reduce(document) { $0[String($1)] }
  }

  /// A schema without what only people read.
  private static func bare(_ schema: JSON) -> JSON {
    switch schema {
    case .array(let elements): return .array(elements.map(bare))
    case .object:
      var object = JSON.Object()
      for (name, value) in schema.pairs where !["description", "example", "examples"].contains(name) {
        // Here, the names are those of members.
        let isNamed = name == "properties"
        _ = object.insert(isNamed ? bareValues(of: value) : bare(value), forKey: name)
      }
      return .object(object)
    case .null, .bool, .number, .string: return schema
    }
  }

  private static func bareValues(of value: JSON) -> JSON {
    var object = JSON.Object()
    for (name, schema) in value.pairs { _ = object.insert(bare(schema), forKey: name) }
    return .object(object)
  }
}

extension JSON {
  /// Null if this is not an object, or has no such member.
  fileprivate subscript(name: String) -> JSON {
    guard case .object(let object) = self else { return .null }
    return object[name] ?? .null
  }

  fileprivate var pairs: [(String, JSON)] {
    guard case .object(let object) = self else { return [] }
    return object.keys.map { ($0, object[$0] ?? .null) }
  }

  fileprivate var list: [JSON] {
    guard case .array(let elements) = self else { return [] }
    return elements
  }
}
