import Yams

/// The service's functions that write the objects of responses: one for each, with a parameter for each member.
struct Responses {
  private let schemas: Schemas

  init(_ schemas: Schemas) {
    self.schemas = schemas
  }

  /// The text of the file with all functions.
  func file() throws -> String {
    let models = schemas.models { schemas.written.contains($0) && schemas[$0]?["x-json"]?.string != "hand" }
    var text = SwiftText()
    text.line("import Postgres")
    text.blank()
    text.documentation(
      """
      Writes the objects of responses and webhooks. For a member that may be absent, nil leaves it out; for others, nil is
      null.
      """)
    try text.block("extension JSONWriter") {
      for (_, parts) in models {
        if parts != models[0].schemas { $0.blank() }
        try write(parts, to: &$0)
      }
    }
    return text.text
  }

  private func write(_ parts: [String], to text: inout SwiftText) throws {
    guard let description = schemas[parts[0]]?["description"]?.string else {
      throw Fault("\(parts[0]) has no description")
    }
    let values = try values(of: parts)
    let name = parts[0].prefix(1).lowercased() + parts[0].dropFirst()
    let end = description.firstRange(of: ". ")?.lowerBound ?? description.endIndex
    text.documentation("\(description[..<end]).")
    text.line("@inline(__always)")
    text.block("mutating func \(name)(\(values.compactMap(\.parameter).joined(separator: ", ")))") {
      $0.line("openObject()")
      for value in values { $0.line(value.statement) }
      $0.line("closeObject()")
    }
  }

  // MARK: Members

  /// A statement of a function, and its parameter: a member, or several as one piece of JSON.
  private struct Value {
    /// Nil for a constant.
    let parameter: String?
    let statement: String
  }

  private func values(of parts: [String]) throws -> [Value] {
    let lists = parts.map { part in schemas[part].map(members) ?? [] }
    var order: [String] = []
    for member in lists.joined() where !order.contains(member.name) { order.append(member.name) }
    return try order.map { name in
      let found = lists.compactMap { $0.first { $0.name == name } }
      if let piece = found[0].schema["x-piece"]?.string {
        return Value(parameter: "\(piece): JSONDocument", statement: "members(of: \(piece))")
      }
      // A member that one of the schemas lacks, or does not require, may be absent.
      let isRequired = found.count == parts.count && found.allSatisfy(\.isRequired)
      return try value(found[0], isRequired: isRequired, in: "\(parts[0]).\(name)")
    }
  }

  /// The members of an object, up to those that the service has as one piece.
  private func members(of schema: Node) -> [Schemas.Member] {
    let parts = schema["allOf"]?.sequence ?? []
    let members = parts.flatMap { part -> [Schemas.Member] in
      if let piece = part["x-piece"]?.string { return [Schemas.Member(name: piece, schema: part, isRequired: true)] }
      return self.members(of: Schemas.reference(part).flatMap { schemas[$0] } ?? part)
    }
    let all = members + schemas.ownMembers(of: schema)
    return all.firstIndex { $0.schema["x-piece"] != nil }.map { Array(all[...$0]) } ?? all
  }

  private func value(_ member: Schemas.Member, isRequired: Bool, in place: String) throws -> Value {
    if let constant = member.schema["const"]?.string, member.schema["type"]?.string == "string" {
      return Value(parameter: nil, statement: "member(\"\(member.name)\", \"\(constant)\")")
    }
    let label = member.name.camelCased
    let (type, isNullable) = try type(of: member.schema, in: place)
    let optional = (isNullable ? "?" : "") + (isRequired ? "" : "?")
    let isWord = type == Self.word
    let value = isWord ? label + (isNullable ? "?" : "") + ".rawValue" : label
    let statement = "member(\"\(member.name)\", \(value))"
    return Value(
      parameter: "\(label): " + (type.hasPrefix("some ") && !optional.isEmpty ? "(\(type))" : type) + optional,
      statement: isRequired ? statement : "if let \(label) { \(statement) }")
  }

  // MARK: Types

  private static let word = "some RawRepresentable<String>"
  private static let object = "some JSONWritable"

  /// The type of a value in the service, and whether null is one of its values.
  private func type(of schema: Node, in place: String) throws -> (name: String, isNullable: Bool) {
    if let name = Schemas.reference(schema), let target = schemas[name] {
      if schemas.isID(target) { return (try schemas.type(of: schema, in: place).name, false) }
      if schemas.isHand(name), target["type"]?.string == "string" { return (name, false) }
      return try type(of: target, in: place)
    }
    if schemas.words(of: schema) != nil { return (Self.word, false) }
    if let parts = schema["anyOf"]?.sequence {
      let others = parts.filter { $0["type"]?.string != "null" }
      guard others.count == 1 else { throw Fault("\(place): no type in the service for several alternatives") }
      let (name, isNullable) = try type(of: others[0], in: place)
      return (name, isNullable || others.count < parts.count)
    }
    let types = schema["type"]?.texts ?? []
    let isNullable = types.contains("null")
    switch types.first(where: { $0 != "null" }) {
    case "integer": return ("Int", isNullable)
    case "number": return ("Double", isNullable)
    case "boolean": return ("Bool", isNullable)
    case "string": return (schema["format"]?.string == "date-time" ? "Timestamp" : "String", isNullable)
    case "array":
      guard let items = schema["items"] else { throw Fault("\(place): an array needs items") }
      let element = try type(of: items, in: place).name
      // The service may have items without members of their own as one piece of JSON.
      let isMap = element == Self.object && !schemas.isObject(Schemas.reference(items).flatMap { schemas[$0] } ?? items)
      return (isMap ? element : "[\(element == Self.word ? Self.object : element)]", isNullable)
    default: return (Self.object, isNullable)
    }
  }
}
