import Foundation
import Postgres

@testable import App

/// A schema of the OpenAPI document: the parts of JSON Schema that the document uses. It is compiled once, because the
/// tests check every response.
final class APISchema: Sendable {
  /// A schema that stands where it is used, or one of the document's components.
  enum Reference: Sendable {
    case inline(APISchema)
    case component(String)
  }

  /// The schemas among the document's components, by their `$ref`.
  typealias Components = [String: APISchema]

  private let types: [String]
  private let choices: [(keyword: String, schemas: [Reference])]
  private let words: [JSON]?
  private let constant: JSON?
  private let required: [String]
  private let properties: [String: Reference]
  /// The place of each member in the document, which is its place in JSON.
  private let places: [String: Int]
  /// Nil if the schema does not say what other members are allowed.
  private let additional: Additional?
  private let items: Reference?
  private let maximumItems: Int?
  private let pattern: NSRegularExpression?
  private let lengths: (least: Int?, most: Int?)
  private let format: String?
  private let range: (least: Double?, most: Double?)

  private enum Additional: Sendable {
    case anything
    case matching(Reference)
  }

  /// - Parameter resolved: follows the references of a part of the document.
  init(_ schema: JSON, resolved: (JSON) -> JSON) throws {
    // Only other people's clients accept words that this release does not know.
    let schema = Self.closed(schema)
    types = schema["type"].string.map { [$0] } ?? schema["type"].array.compactMap(\.string)
    choices = try ["anyOf", "oneOf"].compactMap { keyword in
      // Choices of required members limit requests only.
      guard case .array(let parts) = schema[keyword], parts.contains(where: { $0["required"] == .null }) else {
        return nil
      }
      return (keyword, try parts.map { try Self.reference($0, resolved) })
    }
    if case .array(let words) = schema["enum"] { self.words = words } else { words = nil }
    constant = schema["const"] == .null ? nil : schema["const"]
    required = Self.required(by: schema, resolved)
    let members = try Self.properties(of: schema, resolved)
    properties = Dictionary(members) { _, own in own }
    places = Dictionary(members.enumerated().map { ($1.name, $0) }) { _, own in own }
    additional =
      switch schema["additionalProperties"] {
      case .null: nil
      case .bool(true): .anything
      case let other: .matching(try Self.reference(other, resolved))
      }
    items = schema["items"] == .null ? nil : try Self.reference(schema["items"], resolved)
    maximumItems = schema["maxItems"].int
    pattern = try schema["pattern"].string.map { try NSRegularExpression(pattern: $0) }
    lengths = (schema["minLength"].int, schema["maxLength"].int)
    format = schema["format"].string
    range = (schema["minimum"].double, schema["maximum"].double)
  }

  static func reference(_ schema: JSON, _ resolved: (JSON) -> JSON) throws -> Reference {
    if let name = schema["$ref"].string { return .component(name) }
    return .inline(try APISchema(schema, resolved: resolved))
  }

  private static func required(by schema: JSON, _ resolved: (JSON) -> JSON) -> [String] {
    schema["required"].array.compactMap(\.string)
      + schema["allOf"].array.flatMap { required(by: resolved($0), resolved) }
  }

  /// In order, those of all parts of `allOf` first.
  private static func properties(
    of schema: JSON, _ resolved: (JSON) -> JSON
  ) throws -> [(name: String, schema: Reference)] {
    var known = try schema["allOf"].array.flatMap { try properties(of: resolved($0), resolved) }
    if case .object(let own) = schema["properties"] {
      known += try own.map { ($0, try reference($1, resolved)) }
    }
    return known
  }

  /// The list of words in place of an open list: `anyOf` of words and any string.
  private static func closed(_ schema: JSON) -> JSON {
    guard case .array(let parts) = schema["anyOf"], parts.count == 2, parts[1] == .object(["type": .string("string")]),
      case .array = parts[0]["enum"]
    else { return schema }
    return parts[0]
  }

  // MARK: Checking

  /// How a value breaks a schema. Each fault begins with its place in the value: `.items[0].id is no UUID`. A member
  /// that an object's schema does not name is a fault, and so is a member out of order.
  static func faults(in value: JSON, _ schema: Reference, _ components: Components) -> [String] {
    switch schema {
    case .inline(let schema): schema.faults(in: value, components)
    case .component(let name): components[name]?.faults(in: value, components) ?? [" has the unknown schema \(name)"]
    }
  }

  private func faults(in value: JSON, _ components: Components) -> [String] {
    for (keyword, schemas) in choices {
      let fits = schemas.count { Self.faults(in: value, $0, components).isEmpty }
      if fits == 0 || keyword == "oneOf" && fits > 1 { return [" fits \(fits) of \(keyword)"] }
    }
    if let fault = typeFault(in: value) { return [fault] }
    var found: [String] = []
    if let words, !words.contains(value) { found.append(" is not in enum") }
    if let constant, constant != value { found.append(" is not const") }
    switch value {
    case .object(let members):
      for name in required where members[name] == nil { found.append(".\(name) is missing") }
      let known = members.keys.filter { places[$0] != nil }
      for (name, next) in zip(known, known.dropFirst()) where places[name, default: 0] > places[next, default: 0] {
        found.append(".\(next) is after .\(name)")
      }
      for (name, member) in members {
        if let schema = properties[name] {
          found += Self.faults(in: member, schema, components).map { ".\(name)\($0)" }
        } else if case .matching(let schema) = additional {
          found += Self.faults(in: member, schema, components).map { ".\(name)\($0)" }
        } else if !properties.isEmpty, additional == nil {
          found.append(".\(name) is not documented")
        }
      }
    case .array(let list):
      if let maximumItems, list.count > maximumItems { found.append(" has too many items") }
      guard let items else { break }
      for (index, item) in list.enumerated() {
        found += Self.faults(in: item, items, components).map { "[\(index)]\($0)" }
      }
    case .string(let text): found += textFaults(in: text)
    case .number(let digits):
      let number = Double(digits) ?? .nan
      if let least = range.least, number < least { found.append(" is too low") }
      if let most = range.most, number > most { found.append(" is too high") }
    case .bool, .null: break
    }
    return found
  }

  private func typeFault(in value: JSON) -> String? {
    guard !types.isEmpty else { return nil }
    let type =
      switch value {
      case .null: "null"
      case .bool: "boolean"
      case .number(let digits): digits.contains { ".eE".contains($0) } ? "number" : "integer"
      case .string: "string"
      case .array: "array"
      case .object: "object"
      }
    if types.contains(type) || type == "integer" && types.contains("number") { return nil }
    return " is \(type), not \(types.joined(separator: " or "))"
  }

  private func textFaults(in text: String) -> [String] {
    var found: [String] = []
    if let pattern, pattern.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) == nil {
      found.append(" does not match \(pattern.pattern)")
    }
    if let most = lengths.most, text.unicodeScalars.count > most { found.append(" is too long") }
    if let least = lengths.least, text.unicodeScalars.count < least { found.append(" is too short") }
    if format == "uuid", UUID(uuidString: text) == nil { found.append(" is no UUID") }
    if format == "date-time", Timestamp(rfc3339: text) == nil { found.append(" is not a time") }
    return found
  }
}

extension JSON {
  fileprivate var double: Double? {
    if case .number(let digits) = self { Double(digits) } else { nil }
  }
}
