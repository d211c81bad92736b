import Foundation

/// A request to the API, before it has a token.
struct APICall: Sendable {
  /// When a request may be sent again.
  enum Repeats: Sendable {
    /// Always: it reads, or it has a key.
    case always
    /// Only if the service says that nothing has happened.
    case ifNothingHappened
    /// Never.
    case never
  }

  var method: String
  /// Below `/api/v1`, such as `/friends`.
  var path: String
  var query: [(name: String, value: String)] = []
  var headers: [String: String] = [:]
  var body: Data?
  /// Whether the request has the user's token.
  var isAuthenticated = true
  var repeats = Repeats.ifNothingHappened
  var expected = ExpectedResponse.json
  /// Seconds without any progress.
  var timeout: TimeInterval = 30

  static func get(_ path: String, _ query: [(name: String, value: String?)] = []) -> APICall {
    let given = query.compactMap { parameter in parameter.value.map { (parameter.name, $0) } }
    return APICall(method: "GET", path: path, query: given, repeats: .always)
  }

  /// A page of a list.
  static func page(
    _ path: String, _ query: [(name: String, value: String?)] = [], limit: Int?, cursor: String?
  ) -> APICall {
    get(path, query + [("limit", limit.map(String.init)), ("cursor", cursor)])
  }

  /// A write without a body.
  static func write(
    _ method: String, _ path: String, query: [(name: String, value: String)] = [], key: IdempotencyKey
  ) -> APICall {
    APICall(
      method: method, path: path, query: query, headers: ["Idempotency-Key": key.rawValue], repeats: .always)
  }

  /// A write with a body of JSON.
  static func write(_ method: String, _ path: String, _ body: some Encodable, key: IdempotencyKey) throws -> APICall {
    var call = write(method, path, key: key)
    try call.setBody(body)
    return call
  }

  /// A POST below `/auth`, where keys are not known.
  static func auth(_ path: String, _ body: some Encodable, isAuthenticated: Bool = false) throws -> APICall {
    var call = APICall(method: "POST", path: "/auth" + path, isAuthenticated: isAuthenticated)
    try call.setBody(body)
    return call
  }

  mutating func setBody(_ value: some Encodable) throws {
    do {
      body = try JSONEncoder.muster().encode(value)
    } catch {
      throw MusterError.unexpectedResponse(status: 0, detail: "The request cannot be written as JSON: \(error)")
    }
    headers["Content-Type"] = "application/json"
  }
}
