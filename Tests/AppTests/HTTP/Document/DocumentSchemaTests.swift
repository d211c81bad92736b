import Testing

@testable import App

/// The rules for schemas of the document, by which generators can name, type and describe everything.
@Suite struct DocumentSchemaTests {
  private let root: JSON

  init() throws { root = try JSON(parsing: Resources.openAPIJSON.utf8) }

  /// A schema within another one.
  private struct Place {
    let name: String
    let schema: JSON
    /// Whether the schema has a name, or is a part of one that has.
    var isNamed = false
  }

  private var components: [Place] {
    root["components"]["schemas"].members.map { Place(name: $0.key, schema: $0.value, isNamed: true) }
  }

  /// The schemas in a schema: members, items, choices and parts.
  private func inner(_ place: Place) -> [Place] {
    let (name, schema) = (place.name, place.schema)
    var found = schema["properties"].members.map { Place(name: "\(name).\($0.key)", schema: $0.value) }
    found += ["items", "additionalProperties"].compactMap { key in
      guard case .object = schema[key] else { return nil }
      return Place(name: "\(name) \(key)", schema: schema[key])
    }
    found += ["anyOf", "oneOf"].flatMap { schema[$0].array }.map { Place(name: "\(name) choice", schema: $0) }
    found += schema["allOf"].array.map { Place(name: name, schema: $0, isNamed: place.isNamed) }
    return found
  }

  private func all(in place: Place) -> [Place] { [place] + inner(place).flatMap(all) }

  /// The schemas of bodies and parameters, or those of responses and webhooks.
  private func used(inRequests: Bool) -> [Place] {
    var found: [Place] = []
    func add(_ content: JSON, _ name: String) {
      found += content.members.map { Place(name: "\(name) \($0.key)", schema: $0.value["schema"]) }
    }
    for (path, item) in root["paths"].members {
      for (method, operation) in item.members where method != "parameters" {
        let name = operation["operationId"].string ?? "\(method) \(path)"
        if inRequests {
          add(resolved(operation["requestBody"])["content"], name)
          found += (item["parameters"].array + operation["parameters"].array).map(resolved).map {
            Place(name: "\(name) \($0["name"].string ?? "")", schema: $0["schema"])
          }
        } else {
          for response in operation["responses"].members { add(resolved(response.value)["content"], name) }
        }
      }
    }
    if !inRequests {
      for item in root["webhooks"].members { add(item.value["post"]["requestBody"]["content"], item.key) }
    }
    return found
  }

  private func resolved(_ value: JSON) -> JSON {
    guard let reference = value["$ref"].string else { return value }
    return resolved(reference.dropFirst(2).split(separator: "/").reduce(root) { $0[String($1)] })
  }

  /// The names of the components that some schemas use, directly or not.
  private func reached(from places: [Place]) -> Set<String> {
    var (found, next): (Set<String>, [Place]) = ([], places)
    while let place = next.popLast() {
      for part in all(in: place) {
        guard let name = part.schema["$ref"].string?.split(separator: "/").last.map(String.init) else { continue }
        if found.insert(name).inserted {
          next.append(Place(name: name, schema: root["components"]["schemas"][name]))
        }
      }
    }
    return found
  }

  @Test func `every schema and every member has a description`() {
    func description(of schema: JSON) -> String {
      schema["description"].string ?? resolved(schema)["description"].string ?? ""
    }
    for place in components {
      #expect(!description(of: place.schema).isEmpty, "\(place.name)")
      for member in all(in: place).flatMap({ $0.schema["properties"].members }) {
        #expect(!description(of: member.value).isEmpty, "\(place.name).\(member.key)")
      }
    }
  }

  @Test func `every object is a component, and every array has items`() {
    for place in (components + used(inRequests: true) + used(inRequests: false)).flatMap(all) {
      let types = place.schema["type"].array.compactMap(\.string) + [place.schema["type"].string ?? ""]
      #expect(!types.contains("object") || place.isNamed, "\(place.name)")
      #expect(!types.contains("array") || place.schema["items"] != .null, "\(place.name)")
    }
  }

  @Test func `every id has a type of its own`() {
    for place in (components + used(inRequests: true) + used(inRequests: false)).flatMap(all) {
      guard place.schema["format"].string == "uuid" else { continue }
      #expect(place.isNamed && place.name.hasSuffix("ID"), "\(place.name)")
    }
  }

  @Test func `one line of text has a visible character, unless it may be empty`() {
    let lines = components.flatMap(all).filter {
      $0.schema["x-rule"].string == "line" && $0.schema["minLength"] != .null
    }
    #expect(lines.count > 5)
    for line in lines { #expect(line.schema["pattern"].string == #"\S"#, "\(line.name)") }
  }

  @Test(arguments: ["Export", "NotificationPreferences"]) func `every member is always there`(name: String) {
    let schema = root["components"]["schemas"][name]
    #expect(schema["required"].array.compactMap(\.string) == schema["properties"].members.map(\.key))
  }

  @Test func `lists of words are open in responses, and closed in requests`() {
    func isOpen(_ schema: JSON) -> Bool {
      schema["anyOf"].array.contains(.object(["type": .string("string")]))
        && schema["anyOf"].array.contains { $0["enum"] != .null }
    }
    let (asked, answered) = (reached(from: used(inRequests: true)), reached(from: used(inRequests: false)))
    #expect(asked.contains("Answer") && answered.contains("GuestStatus"))
    var counts = (open: 0, closed: 0)
    for component in components {
      let places = all(in: component)
      // The words within an open list.
      let known = places.filter { isOpen($0.schema) }.count
      let closed = places.filter { $0.schema["enum"] != .null }.count - known
      counts.open += known
      counts.closed += closed
      if asked.contains(component.name) { #expect(known == 0, "\(component.name) is open in a request") }
      if answered.contains(component.name) { #expect(closed == 0, "\(component.name) is closed in a response") }
    }
    #expect(counts.open > 15 && counts.closed > 10)
  }
}
