import Yams

/// The named schemas of the document, and what they are in Swift.
struct Schemas {
  let document: Document
  private let byName: [String: Node]
  /// In the order of the document.
  let names: [String]
  /// The schemas that responses, or requests, lead to.
  private(set) var inResponses: Set<String> = []
  private(set) var inRequests: Set<String> = []
  /// Those that the service writes as JSON: in responses, also outside of the API, and in webhooks.
  private(set) var written: Set<String> = []

  init(_ document: Document, _ operations: [Operation]) throws {
    self.document = document
    let entries = document.entries("components", "schemas")
    names = entries.map(\.name)
    byName = Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0.node) })
    for operation in operations {
      for (_, response) in operation.node["responses"]?.entries ?? [] { try collectJSON(of: response) }
    }
    for operation in document.entries("webhooks").flatMap(\.node.entries) {
      try operation.node["requestBody"].map { try collectJSON(of: $0) }
    }
    for operation in operations where operation.path.hasPrefix("/api/") {
      if let schema = operation.body?.schema, operation.body?.types == ["application/json"] {
        collect(schema, into: \.inRequests)
      }
      for parameter in operation.parameters { parameter["schema"].map { collect($0, into: \.inRequests) } }
      for (_, response) in operation.node["responses"]?.entries ?? [] {
        for (_, content) in try document.resolved(response)["content"]?.entries ?? [] {
          content["schema"].map { collect($0, into: \.inResponses) }
        }
      }
    }
  }

  subscript(name: String) -> Node? { byName[name] }

  /// The name at the end of a `$ref`.
  static func reference(_ node: Node) -> String? {
    node["$ref"]?.string.map { String($0.split(separator: "/").last ?? "") }
  }

  private mutating func collectJSON(of body: Node) throws {
    for (type, content) in try document.resolved(body)["content"]?.entries ?? [] where type.hasSuffix("json") {
      content["schema"].map { collect($0, into: \.written) }
    }
  }

  private mutating func collect(_ node: Node, into set: WritableKeyPath<Schemas, Set<String>>) {
    if let name = Self.reference(node) {
      guard self[keyPath: set].insert(name).inserted, let schema = byName[name] else { return }
      return collect(schema, into: set)
    }
    for (key, value) in node.entries {
      guard key == "allOf" else {
        collect(value, into: set)
        continue
      }
      // A part is no type of its own: its members belong to the whole.
      for part in value.sequence ?? [] { collect(Self.reference(part).flatMap { byName[$0] } ?? part, into: set) }
    }
    for value in node.sequence ?? [] { collect(value, into: set) }
  }

  // MARK: Objects

  /// The objects with members of their own, except pages. Several schemas may be one type, such as an event and an event
  /// in a list.
  func models(where isWanted: (String) -> Bool) -> [(name: String, schemas: [String])] {
    var order: [String] = []
    var parts: [String: [String]] = [:]
    for name in names where byName[name].map(isObject) == true && isWanted(name) {
      let swift = swiftName(name)
      guard !swift.contains("<") else { continue }
      if parts[swift] == nil { order.append(swift) }
      parts[swift, default: []].append(name)
    }
    return order.map { ($0, parts[$0] ?? []) }
  }

  /// A member of an object.
  struct Member {
    let name: String
    let schema: Node
    let isRequired: Bool
  }

  /// The members of an object, those of its `allOf` included, in order.
  func members(of schema: Node) -> [Member] {
    let schema = Self.reference(schema).flatMap { byName[$0] } ?? schema
    return (schema["allOf"]?.sequence ?? []).flatMap(members) + ownMembers(of: schema)
  }

  /// Those of its `allOf` not included.
  func ownMembers(of schema: Node) -> [Member] {
    let required = Set(schema["required"]?.texts ?? [])
    return (schema["properties"]?.entries ?? []).map {
      Member(name: $0.name, schema: $0.node, isRequired: required.contains($0.name))
    }
  }

  /// Whether the schema is an object with members of its own, and not only a map.
  func isObject(_ schema: Node) -> Bool {
    schema["properties"] != nil
      || (schema["allOf"]?.sequence ?? []).contains { part in
        isObject(Self.reference(part).flatMap { byName[$0] } ?? part)
      }
  }

  /// The words of a schema. `isOpen`: later releases may add more.
  func words(of schema: Node) -> (words: [String], isOpen: Bool)? {
    if let words = schema["enum"]?.sequence { return (words.compactMap { $0.isNull ? nil : $0.string }, false) }
    let parts = schema["anyOf"]?.sequence ?? []
    guard parts.count == 2, let words = parts[0]["enum"]?.texts, parts[1]["type"]?.string == "string" else {
      return nil
    }
    return (words, true)
  }

  func isHand(_ name: String) -> Bool { byName[name]?["x-swift"]?.string == "hand" }

  /// Whether the type in Swift is for the client's own use.
  func isInternal(_ name: String) -> Bool { byName[name]?["x-swift"]?.string == "internal" }

  // MARK: Swift

  /// The name of a schema in Swift.
  func swiftName(_ name: String) -> String { byName[name]?["x-name"]?.string ?? name }

  /// The type of a value in Swift, and whether null is one of its values.
  func type(of schema: Node, in place: String) throws -> (name: String, isNullable: Bool) {
    if let name = Self.reference(schema) {
      guard let node = byName[name] else { throw Fault("\(place): no schema \(name)") }
      if isID(node) { return (node["x-name"]?.string ?? "\(name.dropLast(2)).ID", false) }
      if isHand(name) || isObject(node) || words(of: node) != nil || node["x-name"] != nil {
        return (swiftName(name), false)
      }
      return try type(of: node, in: name)
    }
    if let parts = schema["anyOf"]?.sequence {
      let others = parts.filter { $0["type"]?.string != "null" }
      let types = try others.map { try type(of: $0, in: place) }
      // A local time is a `Date` in the client, which always sends an offset.
      guard let first = types.first, types.allSatisfy({ $0.name == first.name }) || first.name == "Date" else {
        throw Fault("\(place): alternatives of several types need a schema with `x-swift: hand`")
      }
      return (first.name, others.count < parts.count || types.contains(where: \.isNullable))
    }
    let types = schema["type"]?.texts ?? []
    let isNullable = types.contains("null")
    switch types.first(where: { $0 != "null" }) {
    case "integer": return ("Int", isNullable)
    case "number": return ("Double", isNullable)
    case "boolean": return ("Bool", isNullable)
    case "array":
      guard let items = schema["items"] else { throw Fault("\(place): an array needs items") }
      return ("[\(try type(of: items, in: place).name)]", isNullable)
    case "string":
      switch schema["format"]?.string {
      case "date-time": return ("Date", isNullable)
      case "uri": return ("URL", isNullable)
      case "uuid": throw Fault("\(place): an id is a schema with a name")
      default: return ("String", isNullable)
      }
    case nil where schema["type"] == nil: return ("JSONValue", false)
    default:
      throw Fault("\(place): no type in Swift for \(types)")
    }
  }

  func isID(_ schema: Node) -> Bool { schema["format"]?.string == "uuid" }
}
