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

  /// The same write, refused if there is something newer than this.
  ///
  /// - Parameter tag: a version or a stamp. Nil accepts anything.
  func basedOn(_ tag: String?) -> APICall {
    var call = self
    call.headers["If-Match"] = tag.map { "\"\($0)\"" }
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

extension Route {
  /// The start of the paths of all routes.
  static let prefix = "/api/v1"

  /// The characters of a path's word that stay as they are.
  private static let plain = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

  /// Such as `POST`.
  var method: String { String(template.prefix { $0 != " " }) }

  /// The path below ``prefix``, percent-encoded.
  var path: String {
    var values = values[...]
    let words = template.drop { $0 != "/" }.split(separator: "/").map { word in
      guard word.first == "{" else { return String(word) }
      return values.removeFirst().addingPercentEncoding(withAllowedCharacters: Self.plain) ?? ""
    }
    return words.map { "/" + $0 }.joined()
  }

  /// The words between the slashes of a path.
  static func words(of path: String) -> [String] {
    path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
  }

  /// Reads an id in a path.
  ///
  /// - Throws: the problem, as 404, if the word is not an id
  static func id<Thing>(_ word: String, else problem: Problem.Slug) throws(Problem) -> Identifier<Thing> {
    guard let id = Identifier<Thing>(word) else { throw .missing(problem) }
    return id
  }
}

/// Makes a write safe to repeat: the service carries out requests with the same key once. A key belongs to one user,
/// one call and one set of arguments, for 23 hours.
public struct IdempotencyKey: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
  /// 1 to 255 visible ASCII characters.
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static func random() -> Self { Self(rawValue: UUID().wire) }

  public var description: String { rawValue }
}
