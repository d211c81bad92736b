import HTML

/// Says in words what the schemas of the OpenAPI document allow. Types and notes are HTML.
struct SchemaReader {
  let document: OpenAPIDocument
  let markdown: Markdown

  // MARK: Types

  func typeName(of schema: Tree) -> String {
    let reference = schema.member("$ref").text
    if let name = reference.split(separator: "/").last {
      return "<a href=\"#\(Self.anchor(String(name)))\">\(name.htmlEscaped)</a>"
    }
    if openWords(of: schema) != nil { return "string" }
    for (keyword, word) in [("anyOf", " or "), ("oneOf", " or "), ("allOf", " with ")] {
      let types = schema.member(keyword).elements.filter { !isRule($0) }.map { typeName(of: $0) }
      if !types.isEmpty { return types.joined(separator: word) }
    }
    let names = schema.member("type").elements.map(\.text) + [schema.member("type").text]
    return names.filter { !$0.isEmpty }.map { named($0, schema) }.joined(separator: " or ")
  }

  private func named(_ name: String, _ schema: Tree) -> String {
    switch name {
    case "array": return "array of " + typeName(of: schema.member("items"))
    case "object":
      let values = typeName(of: schema.member("additionalProperties"))
      return values.isEmpty ? name : "object of " + values
    case "string":
      let format = schema.member("format").text
      return format.isEmpty || format == "password" ? name : "\(name) (\(format.htmlEscaped))"
    default: return name.htmlEscaped
    }
  }

  static func anchor(_ name: String) -> String { "schema-\(name)" }

  // MARK: Notes

  /// The description, and each rule.
  func notes(on schema: Tree) -> [String] {
    let target = document.resolved(schema)
    let description = [schema, target].map { $0.member("description").text }.first { !$0.isEmpty } ?? ""
    var rules = self.rules(of: target)
    // A reference may have a default of its own.
    if target != schema, schema.member("default") != .null { rules.append(Self.rule(default: schema)) }
    return description.isEmpty ? rules : [markdown.inline(description.replacing("\n", with: " "))] + rules
  }

  private func rules(of schema: Tree) -> [String] {
    let code = Self.code
    func range(_ least: String, _ most: String, _ unit: String) -> String? {
      switch (schema.member(least).text, schema.member(most).text) {
      case ("", ""): nil
      case ("", let most): "at most \(most)\(unit)"
      case (let least, ""): "at least \(least)\(unit)"
      case (let least, let most): "\(least) to \(most)\(unit)"
      }
    }
    var rules = [
      range("minLength", "maxLength", " characters"), range("minItems", "maxItems", " items"),
      range("minimum", "maximum", ""),
    ].compactMap(\.self)
    switch schema.member("pattern").text {
    case "": break
    // The format says it in a word.
    case _ where schema.member("format").text == "date-time": break
    case #"\S"#: rules.append("not only white space")
    case let pattern: rules.append("matches <code>\(pattern.htmlEscaped)</code>")
    }
    let words = schema.member("enum").elements.map(code)
    if !words.isEmpty { rules.append((words.count > 1 ? "one of " : "only ") + words.joined(separator: ", ")) }
    if schema.member("const") != .null { rules.append("always " + code(schema.member("const"))) }
    if let words = openWords(of: schema) {
      rules.append("one of " + words.map(code).joined(separator: ", ") + ", or a word of a later release")
    }
    if schema.member("default") != .null { rules.append(Self.rule(default: schema)) }
    if schema.member("example") != .null { rules.append("for example " + code(schema.member("example"))) }
    let item = schema.member("items")
    if item != .null, item.member("$ref") == .null { rules += self.rules(of: item).map { "each " + $0 } }
    return rules + conditions(of: schema)
  }

  private static func code(_ value: Tree) -> String {
    "<code>\((value.stringValue ?? value.line).htmlEscaped)</code>"
  }

  private static func rule(default schema: Tree) -> String { "default " + code(schema.member("default")) }

  /// The known words of an open list, which is `anyOf` of these words and any string.
  private func openWords(of schema: Tree) -> [Tree]? {
    let parts = schema.member("anyOf").elements
    let anyString = Tree.object([Tree.Member(key: "type", value: .string("string"))])
    guard parts.count == 2, parts[1] == anyString else { return nil }
    let words = parts[0].member("enum").elements
    return words.isEmpty ? nil : words
  }

  /// Combinations of members that are required.
  private func conditions(of schema: Tree) -> [String] {
    [("anyOf", "requires ", " or "), ("oneOf", "requires exactly one of ", ", ")].compactMap { keyword, words, mark in
      let choices = schema.member(keyword).elements.filter(isRule).map { choice in
        choice.member("required").elements.map { "<code>\($0.text.htmlEscaped)</code>" }.joined(separator: " and ")
      }.filter { !$0.isEmpty }
      return choices.isEmpty ? nil : words + choices.joined(separator: mark)
    }
  }

  /// Whether a part of a schema has no type of its own, and only restricts the members of the schema that it is in.
  private func isRule(_ part: Tree) -> Bool {
    !part.members.isEmpty
      && part.members.allSatisfy { ["required", "properties", "if", "then", "else"].contains($0.key) }
  }

  // MARK: Fields

  /// The members of an object. Those of an object within it that has no name follow it, such as `data.title`.
  func fields(of schema: Tree, below prefix: String = "") -> [APIReference.Field] {
    let schema = document.resolved(schema)
    let required = schema.member("required").elements.map(\.text)
    var fields: [APIReference.Field] = []
    for keyword in ["allOf", "anyOf", "oneOf"] {
      let parts = schema.member(keyword).elements.filter { $0.member("type").text != "null" && !isRule($0) }
        .map { self.fields(of: $0, below: prefix) }
      fields += keyword == "allOf" ? parts.flatMap(\.self) : Self.choices(parts)
    }
    for (name, member) in schema.member("properties").members {
      fields.append(
        APIReference.Field(
          name: prefix + name, place: "", isRequired: required.contains(name), type: typeName(of: member),
          notes: notes(on: member)))
      if member.member("$ref").text.isEmpty, member.member("properties") != .null {
        fields += self.fields(of: member, below: "\(prefix)\(name).")
      }
    }
    return fields
  }

  /// The members of alternatives, each once. A member is required if all of them require it.
  private static func choices(_ parts: [[APIReference.Field]]) -> [APIReference.Field] {
    var fields: [APIReference.Field] = []
    for field in parts.joined() where !fields.contains(where: { $0.name == field.name }) {
      let isRequired = parts.allSatisfy { $0.contains { $0.name == field.name && $0.isRequired } }
      fields.append(
        APIReference.Field(
          name: field.name, place: field.place, isRequired: isRequired, type: field.type, notes: field.notes))
    }
    return fields
  }

  /// - Parameter homes: links to where the fields of some schemas are shown already.
  func schemas(shownAt homes: [String: String] = [:]) -> [APIReference.Schema] {
    document.root.member("components").member("schemas").members.map { name, schema in
      let fields = homes[name] == nil ? self.fields(of: schema) : []
      let place = homes[name].map { ["fields: see \($0)"] } ?? []
      return APIReference.Schema(
        name: name, anchor: Self.anchor(name), type: typeName(of: schema), notes: notes(on: schema) + place,
        fields: fields, hasFields: !fields.isEmpty)
    }
  }
}
