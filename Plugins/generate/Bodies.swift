import Yams

/// The service's readers of request bodies, as the document describes them. The head of the document explains the keys
/// `x-rule`, `x-type` and `x-read`.
struct Bodies {
  private let schemas: Schemas
  /// The schemas of the bodies that clients send to the API, as JSON.
  private let bodies: [String]

  init(_ schemas: Schemas, _ operations: [Operation]) throws {
    self.schemas = schemas
    bodies = try operations.filter { $0.path.hasPrefix("/api/v1/") && $0.body?.types == ["application/json"] }.map {
      guard let name = $0.body?.schema.flatMap(Schemas.reference) else { throw Fault("\($0.id): a body has a name") }
      return name
    }
  }

  /// How a value is read.
  private struct Rule {
    /// In Swift, such as `.text(1...500)`.
    let text: String
    let type: String
    let isNullable: Bool
  }

  private struct Member {
    let name: String
    let rule: Rule
    let isRequired: Bool
    /// An absent member keeps a value, and null clears it.
    let clears: Bool
    /// The value of an absent member, in Swift.
    let fallback: String?

    var type: String {
      if clears { return "Edit<\(rule.type)?>" }
      return isRequired || fallback != nil ? rule.type : rule.type + "?"
    }

    var statement: String {
      let verb = clears ? "clearableEdit" : isRequired ? "required" : "optional"
      return "\(name) = fields.\(verb)(\"\(name)\", \(rule.text))" + (fallback.map { " ?? \($0)" } ?? "")
    }

    /// Whether one constant may serve both: whether null is allowed does not matter.
    func isSame(as other: Member) -> Bool {
      name == other.name && rule.text == other.rule.text && rule.type == other.rule.type
    }
  }

  /// The text of the file with all readers.
  func file() throws -> String {
    var readers: Set<String> = []
    for name in bodies { try collect(name, in: &readers) }
    var text = SwiftText()
    text.line("import Postgres")
    text.blank()
    text.documentation(
      "The bodies of requests, by the names of their schemas. A body that a table or a verb reads by hand has a constant "
        + "for each member.")
    try text.block("enum Body") {
      for (number, name) in schemas.names.filter(readers.contains).enumerated() {
        if number > 0 { $0.blank() }
        try write(name, in: &$0)
      }
    }
    return text.text
  }

  private func write(_ name: String, in text: inout SwiftText) throws {
    let members = try members(of: name)
    let description = schemas[name]?["description"]?.string ?? ""
    text.documentation(description.last == "." ? description : description + ".")
    guard schemas[name]?["x-read"] == nil else {
      text.block("enum \(name)") {
        for member in members {
          $0.line(
            "static let \(member.name) = Fields.Member<\(member.rule.type)>(\"\(member.name)\", \(member.rule.text))")
        }
      }
      return
    }
    text.block("struct \(name): Sendable") {
      for member in members { $0.line("let \(member.name): \(member.type)") }
      $0.blank()
      // A statement for each member: one long expression would take the compiler long.
      $0.block("init(_ fields: inout Fields)") {
        for member in members { $0.line(member.statement) }
      }
    }
  }

  // MARK: Schemas

  /// The schema's own reader, and those of the objects in it.
  private func collect(_ name: String, in readers: inout Set<String>) throws {
    guard !readers.contains(name), let schema = schemas[name] else { return }
    switch schema["x-read"]?.string {
    case "hand": return
    case "parts":
      for part in schema["allOf"]?.sequence ?? [] {
        guard let part = Schemas.reference(part) else { throw Fault("\(name): parts are named schemas") }
        try collect(part, in: &readers)
      }
    case nil, "members":
      readers.insert(name)
      for member in raw(name) {
        let layers = layers(of: member.schema)
        if let object = layers.name, schemas[object].map(schemas.isObject) == true {
          try collect(object, in: &readers)
        }
      }
    case let other?:
      let others = try members(of: other)
      for member in try members(of: name) where !others.contains(where: member.isSame) {
        throw Fault("\(name).\(member.name) has another rule than in \(other)")
      }
      try collect(other, in: &readers)
    }
  }

  /// The members of an object, or of all alternatives.
  private func raw(_ name: String) -> [Schemas.Member] {
    guard let schema = schemas[name] else { return [] }
    let alternatives = (schema["oneOf"] ?? schema["anyOf"])?.sequence ?? [schema]
    let lists = alternatives.map(schemas.members)
    var order: [String] = []
    for member in lists.joined() where !order.contains(member.name) { order.append(member.name) }
    return order.compactMap { name in
      let found = lists.compactMap { $0.first { $0.name == name } }
      let isRequired = found.count == lists.count && found.allSatisfy(\.isRequired)
      return found.first.map { Schemas.Member(name: name, schema: $0.schema, isRequired: isRequired) }
    }
  }

  private func members(of name: String) throws -> [Member] {
    try raw(name).map { member in
      let rule = try rule(of: member.schema, in: "\(name).\(member.name)")
      let clears = member.schema["x-null"]?.string == "clears" && !member.isRequired && rule.isNullable
      let fallback = member.schema["default"]?.string
      return Member(
        name: member.name, rule: rule, isRequired: member.isRequired && !rule.isNullable, clears: clears,
        fallback: fallback.map { ["Bool", "Int", "Double"].contains(rule.type) ? $0 : ".\($0.camelCased)" })
    }
  }

  /// The schema, then what its references lead to. The members next to a reference come before those of its target.
  private func layers(of schema: Node) -> (layers: [Node], name: String?, isNullable: Bool) {
    var (layers, name, isNullable) = ([schema], nil as String?, false)
    while let last = layers.last {
      if let reference = Schemas.reference(last), let next = schemas[reference] {
        layers.append(next)
        name = reference
      } else if let parts = last["anyOf"]?.sequence, parts.count == 2, parts[1]["type"]?.string == "null" {
        layers.append(parts[0])
        isNullable = true
      } else {
        isNullable = isNullable || last["type"]?.texts.contains("null") == true
        break
      }
    }
    return (layers, name, isNullable)
  }

  // MARK: Rules

  private func rule(of schema: Node, in place: String) throws -> Rule {
    let (layers, name, isNullable) = layers(of: schema)
    guard let base = layers.last else { throw Fault("\(place) has no schema") }
    func key(_ key: String) -> String? { layers.lazy.compactMap { $0[key]?.string }.first }
    let plain = try plainRule(of: base, name, in: place)
    let text = try key("x-rule").map { try named($0, base, in: place) } ?? plain.text
    guard let text else { throw Fault("\(place) needs an x-rule") }
    guard let type = key("x-type") ?? plain.type else { throw Fault("\(place) needs an x-type") }
    return Rule(text: text, type: type, isNullable: isNullable)
  }

  /// The rule that follows from the schema alone.
  private func plainRule(of schema: Node, _ name: String?, in place: String) throws -> (text: String?, type: String?) {
    if let words = schemas.words(of: schema)?.words {
      return (".word(of: [\(words.map { ".\($0.camelCased)" }.joined(separator: ", "))])", name.map(schemas.swiftName))
    }
    switch schema["type"]?.texts.first(where: { $0 != "null" }) {
    case "boolean": return (".flag", "Bool")
    case "integer": return (try range(of: schema).map { ".integer(\($0))" }, "Int")
    case "number": return (try range(of: schema).map { ".number(\($0))" }, "Double")
    case "string" where schemas.isID(schema):
      return (".id()", name.map { schema["x-name"]?.string ?? "\($0.dropLast(2)).ID" })
    case "string" where schema["format"]?.string == "date-time": return (".time", "Timestamp")
    case "string": return (nil, "String")
    case "array":
      guard let items = schema["items"], let limit = schema["maxItems"]?.int else {
        throw Fault("\(place): an array needs items and maxItems")
      }
      let rule = try rule(of: items, in: "\(place)[]")
      return (".list(of: \(rule.text), atMost: \(limit))", "[\(rule.type)]")
    default: return (nil, nil)
    }
  }

  private func range(of schema: Node) throws -> String? {
    guard let least = schema["minimum"]?.int, let most = schema["maximum"]?.int else { return nil }
    return "\(least)...\(most)"
  }

  /// `opaque deviceToken` is `.opaque(1...1024).deviceToken`.
  private func named(_ words: String, _ schema: Node, in place: String) throws -> String {
    try words.split(separator: " ").map { word in
      guard ["line", "text", "opaque"].contains(word) else { return ".\(word)" }
      guard let most = schema["maxLength"]?.int else { throw Fault("\(place) needs a maxLength") }
      // A line has a visible character.
      let least = schema["minLength"]?.int ?? (word == "line" ? 1 : 0)
      return ".\(word)(\(least)...\(most))"
    }.joined()
  }
}
