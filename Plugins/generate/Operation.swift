import Foundation
import Yams

/// One method of one path, with what the document says about it. The head of the document explains the `x-` keys.
struct Operation {
  let id: String
  let method: String
  let path: String
  let node: Node
  let parameters: [Node]
  let summary: String
  let access: String
  /// The rate limit that its requests count against.
  let rate: String?
  let body: Body?
  let repeatsInSession: Bool
  let deprecation: (since: String, sunset: String)?

  struct Body {
    let isRequired: Bool
    let types: [String]
    let schema: Node?
    /// In bytes, if it may have more than other bodies.
    let maximum: Int?
    let perUser: Int?
    let inAll: Int?
    /// The query parameter and its value that permit a body of the maximum.
    let condition: [String]
  }

  init(_ method: String, _ path: String, _ node: Node, of item: Node, in document: Document) throws {
    guard let id = node["operationId"]?.string else { throw Fault("\(method) \(path) has no operationId") }
    let place = "\(id) (\(method) \(path))"
    guard let summary = node["summary"]?.string else { throw Fault("\(place) has no summary") }
    (self.id, self.method, self.path, self.node, self.summary) = (id, method, path, node, summary)
    let own = (item["parameters"]?.sequence ?? []) + (node["parameters"]?.sequence ?? [])
    parameters = try own.map(document.resolved)
    guard let security = (node["security"] ?? document.security)?.sequence else {
      throw Fault("\(place): `security` is missing, here and at the root; `[]` lets anyone call")
    }
    let allowsNone = security.isEmpty || security.contains { $0.entries.isEmpty }
    access = !allowsNone ? "signedIn" : security.isEmpty ? "anyone" : "optional"
    let limit = node["x-rate"]?.string
    guard limit != nil || !allowsNone else {
      throw Fault("\(place): without a token, x-rate says which limit its requests count against, or `none`")
    }
    rate = limit == "none" ? nil : limit ?? (method == "get" ? "reads" : "writes")
    repeatsInSession = node["x-repeats"]?.string == "session"
    guard node["x-repeats"] == nil || repeatsInSession else {
      throw Fault("\(place): x-repeats is `session` or absent")
    }
    deprecation = try node["x-deprecated"].map {
      guard let since = $0["since"]?.string, let sunset = $0["sunset"]?.string else {
        throw Fault("\(place): x-deprecated has `since` and `sunset`")
      }
      return (try timestamp(since), try timestamp(sunset))
    }
    guard (node["deprecated"]?.bool == true) == (deprecation != nil) else {
      throw Fault("\(place): `deprecated` goes with x-deprecated")
    }
    body = try node["requestBody"].map { try Body(document.resolved($0), limits: node["x-body"], in: place) }
    guard node["x-body"] == nil || body != nil && !allowsNone else {
      throw Fault("\(place): x-body is for the body of an operation that needs a token")
    }
    if let name = body?.condition.first, !names(in: "query").contains(name) {
      throw Fault("\(place): x-body names `\(name)`, which is no query parameter")
    }
    try check("`rate-limited`", isIn: "429", when: rate != nil, document)
    try check("`request-running`", isIn: "409", when: takesKey, document)
  }

  /// A refusal that follows from the attributes is in the description of a response, and only then.
  private func check(_ slug: String, isIn status: String, when isExpected: Bool, _ document: Document) throws {
    let response = try node["responses"]?.entries.first { $0.name == status }.map { try document.resolved($0.node) }
    guard (response?["description"]?.string?.contains(slug) ?? false) == isExpected else {
      throw Fault("\(id): the response \(status) \(isExpected ? "lacks" : "has no reason for") \(slug)")
    }
  }

  var takesKey: Bool { names(in: "header").contains("Idempotency-Key") }

  func names(in place: String) -> [String] {
    parameters.filter { $0["in"]?.string == place }.compactMap { $0["name"]?.string }
  }

  /// The row of this operation in the service's table, such as `.init(.get, "/docs", access: .anyone)`.
  var row: String {
    var arguments = [".\(method)", "\"\(path)\""]
    if access != "signedIn" { arguments.append("access: .\(access)") }
    if let rate { arguments.append("rate: .\(rate.camelCased)") }
    if let body { arguments.append("body: \(body.text)") }
    let query = names(in: "query")
    if !query.isEmpty { arguments.append("query: [\(query.map { "\"\($0)\"" }.joined(separator: ", "))]") }
    if takesKey { arguments.append("takesKey: true") }
    if repeatsInSession { arguments.append("repeats: .inSession") }
    if let deprecation {
      arguments.append("deprecation: .init(since: \(deprecation.since), sunset: \(deprecation.sunset))")
    }
    return "Attributes(\(arguments.joined(separator: ", ")))"
  }
}

extension Operation.Body {
  fileprivate init(_ request: Node, limits: Node?, in place: String) throws {
    let content = request["content"]?.entries ?? []
    isRequired = request["required"]?.bool == true
    (types, schema) = (content.map(\.name), content.first?.node["schema"])
    (maximum, perUser, inAll) = (limits?["maximum"]?.int, limits?["perUser"]?.int, limits?["inAll"]?.int)
    condition = limits?["if"]?.string?.split(separator: "=").map(String.init) ?? []
    guard limits == nil || maximum != nil && perUser != nil && inAll != nil else {
      throw Fault("\(place): x-body has `maximum`, `perUser` and `inAll`")
    }
    guard limits?["if"] == nil || condition.count == 2 else {
      throw Fault("\(place): the `if` of x-body is a query parameter and its value, such as `include=changes`")
    }
  }

  fileprivate var text: String {
    let isJSON = types == ["application/json"]
    let kind = isJSON ? "json" : types == ["application/x-www-form-urlencoded"] ? "form" : "bytes"
    var arguments = [".\(kind)"]
    if !isRequired { arguments.append("isRequired: false") }
    if let maximum { arguments.append("maximum: \(maximum)") }
    if let perUser, let inAll { arguments.append("places: .init(perUser: \(perUser), inAll: \(inAll))") }
    if condition.count == 2 { arguments.append("condition: (\"\(condition[0])\", \"\(condition[1])\")") }
    return ".init(\(arguments.joined(separator: ", ")))"
  }
}

/// `enum Operation` of the service.
func operationsFile(_ operations: [Operation]) -> String {
  var text = SwiftText()
  text.line("import HTTPServer")
  text.line("import Postgres")
  text.blank()
  text.documentation("The operations of the service: one method of one path each.")
  text.block("enum Operation: String, CaseIterable, Sendable") {
    for operation in operations {
      $0.documentation("`\(operation.method.uppercased()) \(operation.path)`: \(operation.summary)")
      $0.line("case \(operation.id)")
    }
    $0.blank()
    $0.documentation("The access, limits and parameters of the operation.")
    $0.block("var attributes: Attributes") {
      $0.block("switch self") {
        for operation in operations { $0.line("case .\(operation.id): \(operation.row)") }
      }
    }
  }
  return text.text
}

/// The start of a day, as Swift.
private func timestamp(_ day: String) throws -> String {
  guard let date = try? Date(day + "T00:00:00Z", strategy: .iso8601) else { throw Fault("\(day) is not a date") }
  return "Timestamp(microseconds: \(Int(date.timeIntervalSince1970) * 1_000_000))"
}
