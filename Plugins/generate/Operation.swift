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
    let security = node["security"] ?? document.security
    let allowsNone = security?.sequence.map { $0.isEmpty || $0.contains { $0.entries.isEmpty } } ?? true
    access = !allowsNone ? "signedIn" : security?.sequence?.isEmpty == false ? "optional" : "anyone"
    rate = node["x-rate"]?.string ?? (allowsNone ? nil : method == "get" ? "reads" : "writes")
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
    guard let request = try node["requestBody"].map(document.resolved) else {
      body = nil
      return
    }
    let limits = node["x-body"]
    let content = request["content"]?.entries ?? []
    body = Body(
      isRequired: request["required"]?.bool == true, types: content.map(\.name), schema: content.first?.node["schema"],
      maximum: limits?["maximum"]?.int, perUser: limits?["perUser"]?.int, inAll: limits?["inAll"]?.int,
      condition: limits?["if"]?.string?.split(separator: "=").map(String.init) ?? [])
  }

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
    if names(in: "header").contains("Idempotency-Key") { arguments.append("takesKey: true") }
    if repeatsInSession { arguments.append("repeats: .inSession") }
    if let deprecation {
      arguments.append("deprecation: .init(since: \(deprecation.since), sunset: \(deprecation.sunset))")
    }
    return "Attributes(\(arguments.joined(separator: ", ")))"
  }
}

extension Operation.Body {
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
  text.line("import HTTPTypes")
  text.line("import Postgres")
  text.blank()
  text.documentation("The operations of the service: one method of one path each.")
  text.block("enum Operation: String, CaseIterable, Sendable") {
    for operation in operations {
      $0.documentation("`\(operation.method.uppercased()) \(operation.path)`: \(operation.summary)")
      $0.line("case \(operation.id)")
    }
    $0.blank()
    $0.documentation("What the document says about the operation.")
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
