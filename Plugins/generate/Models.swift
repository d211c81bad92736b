import Yams

/// The client's models, as the document describes them.
struct Models {
  private let schemas: Schemas

  init(_ schemas: Schemas) {
    self.schemas = schemas
  }

  /// A member of a model.
  struct Property {
    let name: String
    var type: String
    let isOptional: Bool
    /// The value for a member that an older service does not send, and the default of the initializer.
    let absent: String?
    /// Only of the initializer.
    let initial: String?
    /// The only value, if there is only one.
    let constant: String?
    let documentation: String

    /// The name of a time zone, which the device may not know.
    var isZone: Bool { type == "TimeZone" }
    var stored: String { isZone ? name + "Name" : name }
    var storedType: String { (isZone ? "String" : type) + (isOptional ? "?" : "") }
    var fullType: String { type + (isOptional ? "?" : "") }

    /// The compiler infers `Event.ID` from the type of an event's `id`. In `Proposal.Event`, the name `Event` means that.
    func within(_ model: String) -> Property {
      let (outer, inner) = Models.split(model)
      guard type == "\(inner).ID" else { return self }
      var property = self
      property.type = outer == nil ? "Identifier<\(inner)>" : "Identifier<MusterKit.\(inner)>"
      return property
    }
  }

  /// The properties of all models.
  func all() throws -> [(name: String, properties: [Property])] {
    try models.map { ($0.name, try properties(of: $0.schemas)) }
  }

  private var models: [(name: String, schemas: [String])] {
    schemas.models { name in
      !schemas.isHand(name) && (schemas.inResponses.contains(name) || schemas.inRequests.contains(name))
    }
  }

  /// The text of the file with all models.
  func file() throws -> String {
    var text = SwiftText()
    text.line("import Foundation")
    for (name, parts) in models {
      text.blank()
      try write(name, parts, to: &text)
    }
    return text.text
  }

  private func write(_ name: String, _ parts: [String], to text: inout SwiftText) throws {
    let (outer, inner) = Self.split(name)
    let properties = try properties(of: parts).map { $0.within(name) }
    var protocols = ["Codable", "Sendable", "Hashable"]
    if properties.contains(where: { $0.name == "id" && !$0.isOptional }) { protocols.append("Identifiable") }
    let write = { (text: inout SwiftText) in
      text.documentation(description(of: parts[0]))
      guard !schemas.isInternal(parts[0]) else {
        text.block("struct \(inner): Codable, Sendable, Hashable") { text in
          for property in properties { Self.declareInternal(property, in: &text) }
        }
        return
      }
      text.block("public struct \(inner): \(protocols.joined(separator: ", "))") { text in
        for property in properties { Self.declare(property, in: &text) }
        Self.initializer(properties, in: &text)
        Self.keys(properties, in: &text)
        Self.decoder(properties, in: &text)
      }
    }
    if let outer { text.block("extension \(outer)", write) } else { write(&text) }
  }

  private func description(of name: String) -> String {
    let schema = schemas[name]
    return Self.sentence(schema?["description"]?.string ?? "", isEdit: schema?["x-null"]?.string == "clears")
  }

  /// - Parameter isEdit: of a type with members that are edits, or of such a member
  private static func sentence(_ text: String, isEdit: Bool) -> String {
    let text = isEdit ? text.inWordsOfEdits : text.inWordsOfSwift
    return text.isEmpty || text.last == "." ? text : text + "."
  }

  /// `Proposal.Kind` is a type within `Proposal`.
  static func split(_ name: String) -> (outer: String?, inner: String) {
    guard let dot = name.lastIndex(of: ".") else { return (nil, name) }
    return (String(name[..<dot]), String(name[name.index(after: dot)...]))
  }

  private func properties(of parts: [String]) throws -> [Property] {
    let lists = parts.map { part in schemas[part].map(schemas.members) ?? [] }
    var order: [String] = []
    for member in lists.joined() where !order.contains(member.name) { order.append(member.name) }
    return try order.map { name in
      let found = lists.compactMap { $0.first { $0.name == name } }
      // A member that one of the schemas lacks, or does not require, may be absent.
      let isRequired = found.count == parts.count && found.allSatisfy(\.isRequired)
      // A part that may lack the member says when.
      let described = found.first { !$0.isRequired && $0.schema["description"] != nil } ?? found[0]
      return try property(found[0], isRequired: isRequired, describedBy: described.schema, of: parts[0])
    }
  }

  private func property(
    _ member: Schemas.Member, isRequired: Bool, describedBy described: Node, of owner: String
  ) throws -> Property {
    let place = "\(owner).\(member.name)"
    var (type, isNullable) = try schemas.type(of: member.schema, in: place)
    let target = Schemas.reference(member.schema).flatMap { schemas[$0] }
    guard let text = described["description"]?.string ?? target?["description"]?.string else {
      throw Fault("\(place) has no description")
    }
    let isRequest = schemas.inRequests.contains(owner) && !schemas.inResponses.contains(owner)
    let clears = member.schema["x-null"] ?? schemas[owner]?["x-null"]
    var isOptional = isNullable || !isRequired
    var absent: String?
    if clears?.string == "clears", isNullable, !isRequired {
      (type, isOptional, absent) = ("Edit<\(type)>", false, ".keep")
    } else if member.schema["x-absent"] != nil {
      let function = "absent" + member.name.prefix(1).uppercased() + member.name.dropFirst()
      absent = "Self.\(function)(in: container)"
    } else if let value = member.schema["default"], !isRequest {
      (isOptional, absent) = (false, literal(value, type, member.schema))
    } else if isOptional, isRequest, type.hasPrefix("[") {
      (isOptional, absent) = (false, "[]")
    } else if !isOptional, member.schema["x-since"] != nil {
      absent = type.hasPrefix("[") ? "[]" : ["Int": "0", "Bool": "false", "String": "\"\""][type]
      isOptional = absent == nil
    }
    var initial = isOptional ? "nil" : member.schema["x-absent"] == nil ? absent : nil
    let constant = member.schema["const"].map { literal($0, type, member.schema) }
    if let constant { initial = constant }
    if initial == nil, type == "Bool" { initial = "false" }
    if initial == nil, type.hasPrefix("[") { initial = "[]" }
    if initial == nil, type == "TimeZone", isRequest { initial = ".current" }
    return Property(
      name: member.name, type: type, isOptional: isOptional, absent: absent, initial: initial,
      constant: constant,
      documentation: Self.sentence(text, isEdit: clears != nil)
        + (isRequest ? member.schema["default"].map { " Default: `\(literal($0, type, member.schema))`." } ?? "" : ""))
  }

  private func literal(_ value: Node, _ type: String, _ schema: Node) -> String {
    guard ["Int", "Bool", "Double"].contains(type) else {
      let (word, words) = (value.string ?? "", Schemas.reference(schema).flatMap { schemas[$0] })
      return type == "String" ? "\"\(word)\"" : ".\(words?["x-names"]?[word]?.string ?? word.camelCased)"
    }
    return value.string ?? ""
  }

  // MARK: Parts of a model

  private static func declare(_ property: Property, in text: inout SwiftText) {
    text.documentation(property.documentation)
    guard property.isZone else {
      text.line("public var \(property.name): \(property.fullType)")
      return
    }
    text.line("public var \(property.stored): \(property.storedType)")
    let (name, stored) = (property.name, property.stored)
    text.documentation(
      "The time zone. GMT if this device does not know its name: to copy the zone, copy `\(stored)`, which keeps any name."
    )
    text.block("public var \(name): \(property.fullType)") {
      if property.isOptional {
        $0.line("get { \(stored).map { TimeZone(identifier: $0) ?? .gmt } }")
        $0.line("set { \(stored) = newValue?.identifier }")
      } else {
        $0.line("get { TimeZone(identifier: \(stored)) ?? .gmt }")
        $0.line("set { \(stored) = newValue.identifier }")
      }
    }
  }

  private static func declareInternal(_ property: Property, in text: inout SwiftText) {
    text.documentation(property.documentation)
    let constant = property.constant.map { " = \($0)" } ?? ""
    text.line("var \(property.name): \(property.fullType)\(constant)")
  }

  private static func initializer(_ properties: [Property], in text: inout SwiftText) {
    let parameters = properties.map { property in
      "\(property.name): \(property.fullType)" + (property.initial.map { " = \($0)" } ?? "")
    }
    text.blank()
    text.block("public init(\(parameters.joined(separator: ", ")))") {
      for property in properties {
        let value = property.isZone ? property.name + (property.isOptional ? "?" : "") + ".identifier" : property.name
        $0.line("self.\(property.stored) = \(value)")
      }
    }
  }

  private static func keys(_ properties: [Property], in text: inout SwiftText) {
    text.blank()
    text.block("enum CodingKeys: String, CodingKey") {
      let plain = properties.filter { !$0.isZone }.map(\.name)
      if !plain.isEmpty { $0.line("case \(plain.joined(separator: ", "))") }
      for zone in properties where zone.isZone { $0.line("case \(zone.stored) = \"\(zone.name)\"") }
    }
  }

  /// A statement for each member: one long expression would take the compiler long.
  private static func decoder(_ properties: [Property], in text: inout SwiftText) {
    text.blank()
    text.block("public init(from decoder: any Decoder) throws") {
      $0.line("let container = try decoder.container(keyedBy: CodingKeys.self)")
      for property in properties {
        let type = property.isZone ? "String" : property.type
        let isEdit = type.hasPrefix("Edit<")
        let isIfPresent = property.isOptional || property.absent != nil && !isEdit
        let call = "container.decode\(isIfPresent ? "IfPresent" : "")(\(type).self, forKey: .\(property.stored))"
        let absent = isEdit ? nil : property.absent
        $0.line("\(property.stored) = try \(call)" + (absent.map { " ?? \($0)" } ?? ""))
      }
    }
  }
}

extension String {
  /// Nil stands for null, and for an absent member.
  fileprivate var inWordsOfSwift: String {
    replacing(/\b(null|absent)( or null)?\b/, with: "nil").replacing(/\b(Null|Absent)( or null)?\b/, with: "Nil")
  }

  /// `.keep` stands for an absent member, and `.clear` for null.
  fileprivate var inWordsOfEdits: String {
    replacing(
      /An absent member keeps its value(; null clears it)?/, with: "Nil and `.keep` keep a value, `.clear` removes it"
    )
    .replacing(/\b[Nn]ull\b/, with: "`.clear`").replacing(/\b[Aa]bsent\b/, with: "`.keep`")
  }
}
