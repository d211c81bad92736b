import Foundation
import Postgres
import Yams

@testable import App

/// The OpenAPI document, to check responses against it.
struct APIDocument: Sendable {
  static let published = try? APIDocument()

  private let root: JSON
  private let paths: [(segments: [Substring], item: JSON)]

  init() throws {
    root = Self.json(try Yams.load(yaml: Resources.openAPI) ?? NSNull())
    guard case .object(let items) = root["paths"] else { throw Unreadable() }
    paths = items.map { ($0.split(separator: "/"), $1) }
  }

  private struct Unreadable: Error {}

  private static func json(_ value: Any) -> JSON {
    switch value {
    case let value as String: return .string(value)
    case let value as Bool: return .bool(value)
    case let value as Int: return .number(String(value))
    case let value as Double: return .number(String(value))
    case let value as [Any]: return .array(value.map(json))
    case let value as [String: Any]:
      var object = JSON.Object()
      for (name, member) in value { _ = object.insert(json(member), forKey: name) }
      return .object(object)
    default: return .null
    }
  }

  // MARK: Operations

  /// What a response has that the document does not allow.
  ///
  /// - Parameter path: with or without a query.
  func faults(in answer: Answer, to method: String, _ path: String) -> [String] {
    let path = path.prefix { $0 != "?" }
    let method = method == "HEAD" ? "get" : method.lowercased()
    guard let operation = operation(method, path), answer.status != 405 else { return [] }
    guard case .object = operation["responses"][String(answer.status)] else {
      return ["the status \(answer.status) is not documented"]
    }
    let response = resolved(operation["responses"][String(answer.status)])
    let type = answer.header("Content-Type").map { String($0.prefix { $0 != ";" }) }
    guard !answer.body.isEmpty, let type else { return [] }
    let schema = response["content"][type]["schema"]
    guard case .object = schema else { return ["the type \(type) is not documented for \(answer.status)"] }
    return type.hasSuffix("json") ? faults(in: answer.json, schema, "") : []
  }

  private func operation(_ method: String, _ path: Substring) -> JSON? {
    let segments = path.split(separator: "/")
    let matching = paths.filter { known in
      known.segments.count == segments.count
        && zip(known.segments, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
    // A literal segment wins over a parameter, as in the router.
    let best = matching.min { one, other in
      one.segments.count { $0.hasPrefix("{") } < other.segments.count { $0.hasPrefix("{") }
    }
    guard let operation = best?.item[method], operation != .null else { return nil }
    return operation
  }

  private func resolved(_ value: JSON) -> JSON {
    guard let reference = value["$ref"].string else { return value }
    return resolved(reference.dropFirst(2).split(separator: "/").reduce(root) { $0[String($1)] })
  }

  // MARK: Schemas

  /// Where a value breaks a schema: the parts of JSON Schema that the document uses. A member that an object's schema
  /// does not name is a fault too.
  func faults(in value: JSON, _ schema: JSON, _ place: String) -> [String] {
    let schema = resolved(schema)
    for keyword in ["anyOf", "oneOf"] {
      guard case .array(let choices) = schema[keyword], choices.contains(where: { $0["required"] == .null }) else {
        continue
      }
      let fits = choices.count { faults(in: value, $0, place).isEmpty }
      if fits == 0 || keyword == "oneOf" && fits > 1 { return ["\(place) fits \(fits) of \(keyword)"] }
    }
    var found = typeFaults(in: value, schema, place)
    if !found.isEmpty { return found }
    if case .array(let words) = schema["enum"], !words.contains(value) { found.append("\(place) is not in enum") }
    if schema["const"] != .null, schema["const"] != value { found.append("\(place) is not const") }
    switch value {
    case .object(let members):
      for name in required(by: schema) where members[name] == nil {
        found.append("\(place).\(name) is missing")
      }
      let known = properties(of: schema)
      for (name, member) in members {
        if let schema = known[name] {
          found += faults(in: member, schema, "\(place).\(name)")
        } else if schema["additionalProperties"] != .null, schema["additionalProperties"] != .bool(true) {
          found += faults(in: member, schema["additionalProperties"], "\(place).\(name)")
        } else if !known.isEmpty, schema["additionalProperties"] == .null {
          found.append("\(place).\(name) is not documented")
        }
      }
    case .array(let items):
      if let most = schema["maxItems"].int, items.count > most { found.append("\(place) has too many items") }
      for (index, item) in items.enumerated() where schema["items"] != .null {
        found += faults(in: item, schema["items"], "\(place)[\(index)]")
      }
    case .string(let text):
      if let pattern = schema["pattern"].string, let regex = try? Regex(pattern), text.firstMatch(of: regex) == nil {
        found.append("\(place) does not match \(pattern)")
      }
      if let most = schema["maxLength"].int, text.unicodeScalars.count > most { found.append("\(place) is too long") }
      if let least = schema["minLength"].int, text.unicodeScalars.count < least {
        found.append("\(place) is too short")
      }
      if schema["format"].string == "uuid", UUID(uuidString: text) == nil { found.append("\(place) is no UUID") }
      if schema["format"].string == "date-time", Timestamp(rfc3339: text) == nil {
        found.append("\(place) is no time")
      }
    case .number(let digits):
      let number = Double(digits) ?? .nan
      if let least = schema["minimum"].double, number < least { found.append("\(place) is too low") }
      if let most = schema["maximum"].double, number > most { found.append("\(place) is too high") }
    case .bool, .null: break
    }
    return found
  }

  private func typeFaults(in value: JSON, _ schema: JSON, _ place: String) -> [String] {
    let allowed = schema["type"].string.map { [$0] } ?? schema["type"].array.compactMap(\.string)
    guard !allowed.isEmpty else { return [] }
    let type =
      switch value {
      case .null: "null"
      case .bool: "boolean"
      case .number(let digits): digits.contains { ".eE".contains($0) } ? "number" : "integer"
      case .string: "string"
      case .array: "array"
      case .object: "object"
      }
    if allowed.contains(type) || type == "integer" && allowed.contains("number") { return [] }
    return ["\(place) is \(type), not \(allowed.joined(separator: " or "))"]
  }

  private func required(by schema: JSON) -> [String] {
    schema["required"].array.compactMap(\.string) + schema["allOf"].array.flatMap { required(by: resolved($0)) }
  }

  /// Also of all parts of `allOf`.
  private func properties(of schema: JSON) -> [String: JSON] {
    var known: [String: JSON] = [:]
    if case .object(let own) = schema["properties"] { for (name, schema) in own { known[name] = schema } }
    for part in schema["allOf"].array {
      known.merge(properties(of: resolved(part))) { own, _ in own }
    }
    return known
  }
}

extension JSON {
  fileprivate var double: Double? {
    if case .number(let digits) = self { Double(digits) } else { nil }
  }
}
