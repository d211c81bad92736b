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

  let route: Route
  var query: [(name: String, value: String)] = []
  var headers: [String: String] = [:]
  var body: Data?
  /// Whether the request has the user's token.
  var isAuthenticated: Bool
  var repeats: Repeats
  /// Seconds without any progress.
  var timeout: TimeInterval = 30

  private init(_ route: Route, repeats: Repeats) {
    self.route = route
    self.repeats = repeats
    isAuthenticated = route.needsToken
  }

  static func read(_ route: Route, _ query: [(name: String, value: String?)] = []) -> APICall {
    var call = APICall(route, repeats: .always)
    call.query = query.compactMap { parameter in parameter.value.map { (parameter.name, $0) } }
    return call
  }

  /// A page of a list.
  static func page(
    _ route: Route, _ query: [(name: String, value: String?)] = [], limit: Int?, cursor: String?
  ) -> APICall {
    read(route, query + [("limit", limit.map(String.init)), ("cursor", cursor)])
  }

  /// A write without a body.
  ///
  /// - Parameter key: nil for a route that takes none.
  static func write(_ route: Route, key: IdempotencyKey?) -> APICall {
    var call = APICall(route, repeats: key == nil ? .ifNothingHappened : .always)
    call.headers["Idempotency-Key"] = key?.rawValue
    return call
  }

  /// A write with a body of JSON.
  ///
  /// - Parameter key: nil for a route that takes none.
  static func write(_ route: Route, _ body: some Encodable, key: IdempotencyKey?) throws -> APICall {
    var call = write(route, key: key)
    try call.setBody(body)
    return call
  }

  private mutating func setBody(_ value: some Encodable) throws {
    do {
      body = try JSONEncoder.muster().encode(value)
    } catch {
      throw MusterError.unexpectedResponse(status: 0, detail: "The request cannot be written as JSON: \(error)")
    }
    headers["Content-Type"] = "application/json"
  }
}
