import Foundation
import Testing

@testable import MusterKit

/// Requests that each break one rule of the document.
struct Violations {
  private let rules: JSONValue

  init(of rules: JSONValue) { self.rules = rules }

  /// Bodies of a route, as JSON.
  ///
  /// - Parameters:
  ///   - route: with names in place of ids, such as `PATCH /events/@copy`.
  ///   - base: a valid body.
  func bodies(for route: String, from base: JSONValue) throws -> [String] {
    guard case .object(let routes)? = rules["bodies"], case .object(let members) = base else { return [] }
    let words = route.split { " /".contains($0) }
    let known = routes.keys.filter { key in
      let parts = key.split { " /".contains($0) }
      return parts.count == words.count
        && zip(parts, words).allSatisfy { $0 == $1 || $0.hasPrefix("{") && $1.hasPrefix("@") }
    }
    let key = try #require(known.first, "\(route)")
    let schema = resolved(routes[key] ?? .null)
    return try properties(of: schema).flatMap { name, rule in
      try values(breaking: rule, isRequired: schema["required"]?.strings.contains(name) == true).map { value in
        var body = members
        body[name] = value
        return String(decoding: try JSONEncoder.muster().encode(body), as: UTF8.self)
      }
    }
  }

  /// GETs with a parameter that breaks its rule, or that is unknown.
  var queries: [String] {
    guard case .object(let routes)? = rules["queries"] else { return [] }
    return routes.sorted { $0.key < $1.key }.flatMap { route, schema -> [String] in
      // The stream does not end, and an event's guests need an id.
      guard route.hasPrefix("GET"), !route.contains("{"), !route.hasSuffix("stream") else { return [] }
      let isSearch = schema["properties"]?["query"] != nil
      return properties(of: schema).flatMap { name, rule -> [String] in
        // Any text may be a cursor of a later release.
        if name == "cursor" { return [] }
        let wrong = name == "query" ? [""] : rule["type"]?.string == "integer" ? ["0", "101", "x"] : ["nonsense"]
        let rest = isSearch && !["query", "ids"].contains(name) ? "&query=ben" : ""
        return wrong.map { "\(route)?\(name)=\($0)\(rest)" }
      } + ["\(route)?\(isSearch ? "query=ben&" : "")nonsense=1"]
    }
  }

  private func values(breaking rule: JSONValue, isRequired: Bool) -> [JSONValue?] {
    let rule = resolved(rule)
    var values: [JSONValue?] = isRequired ? [nil, .null] : [.null]
    if rule["enum"] != nil { return values + [.string("nonsense"), .integer(7)] }
    switch rule["type"]?.string ?? rule["type"]?.strings.first {
    case "string"?:
      values += [.integer(7), .string("")]
      if case .integer(let most)? = rule["maxLength"] {
        values.append(.string(String(repeating: "a", count: most + 1)))
      }
      if rule["pattern"] != nil { values += [.string("   "), .string("\u{7}")] }
      if rule["format"]?.string.map(["uuid", "date-time", "email"].contains) == true {
        values.append(.string("nonsense"))
      }
    case "integer"?, "number"?:
      values.append(.string("x"))
      if rule["type"]?.string == "integer" || rule["type"]?.strings.contains("integer") == true {
        values.append(.double(1.5))
      }
      if case .integer(let least)? = rule["minimum"] { values.append(.integer(least - 1)) }
      if case .integer(let most)? = rule["maximum"] { values.append(.integer(most + 1)) }
    case "boolean"?: values.append(.string("x"))
    case "array"?:
      values += [.string("x"), .array([.string("nonsense"), .integer(7)])]
      if case .integer(let most)? = rule["maxItems"] {
        let id: JSONValue = .string(ComparedWorlds.people["cleo"] ?? "")
        values.append(.array(Array(repeating: id, count: most + 1)))
      }
    case "object"?:
      values.append(.string("x"))
      for (name, inner) in properties(of: rule) {
        for value in self.values(breaking: inner, isRequired: rule["required"]?.strings.contains(name) == true) {
          var members: [String: JSONValue] = ["name": .string("Here")]
          members[name] = value
          values.append(.object(members))
        }
      }
    default:
      // A time, in one of two forms.
      values += [.integer(7), .string("nonsense"), .string("2040-02-30T12:00:00Z")]
    }
    return values
  }

  /// Of an object in one of several forms: those of all forms.
  private func properties(of schema: JSONValue) -> [(String, JSONValue)] {
    if case .array(let choices)? = schema["oneOf"] ?? schema["anyOf"], schema["properties"] == nil {
      return choices.flatMap { properties(of: resolved($0)) }.filter { $0.1["type"]?.string != "null" }
    }
    guard case .object(let members)? = schema["properties"] else { return [] }
    return members.sorted { $0.key < $1.key }
  }

  /// Follows a reference, and takes a choice between a schema and null for the schema.
  private func resolved(_ schema: JSONValue) -> JSONValue {
    if let name = schema["$ref"]?.string?.split(separator: "/").last {
      return resolved(rules["schemas"]?[String(name)] ?? .null)
    }
    guard case .array(let choices)? = schema["anyOf"] else { return schema }
    let others = choices.filter { $0["type"]?.string != "null" }
    return others.count == 1 ? resolved(others[0]) : schema
  }
}

extension JSONValue {
  fileprivate var strings: [String] {
    guard case .array(let elements) = self else { return [] }
    return elements.compactMap(\.string)
  }
}
