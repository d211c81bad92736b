import Foundation
import MusterClient

/// A service in memory that tests of the app's view models talk to. It logs in one user, serves collections by deltas,
/// and responds to all else as the test says.
final class ScriptedService: Transport, @unchecked Sendable {
  static let user = UUID()
  static let password = "plans-with-friends"

  private let lock = NSLock()
  private var isOffline = false
  private var hasEndedSession = false
  private var collections: [CacheCollection: [JSONValue]] = [:]
  private var stamps: [CacheCollection: Int] = [:]
  private var responses: [String: TransportResponse] = [:]
  private var received: [TransportRequest] = []

  /// All requests that arrived, without those for logins and validations.
  var writes: [TransportRequest] { lock.withLock { received } }

  func goOffline(_ isOffline: Bool = true) { lock.withLock { self.isOffline = isOffline } }

  func endSession() { lock.withLock { hasEndedSession = true } }

  /// Replaces a collection, and moves its stamp.
  func set(_ collection: CacheCollection, to items: [some Encodable & Sendable]) throws {
    let items = try items.map { try JSONValue(encoding: $0) }
    lock.withLock {
      collections[collection] = items
      stamps[collection, default: 0] += 1
    }
  }

  /// Sets the response to a call.
  ///
  /// - Parameter call: method and path below `/api/v1`, such as `PUT /devices`.
  func respond(to call: String, with status: Int, _ body: some Encodable) throws {
    let type = status < 400 ? "application/json" : "application/problem+json"
    let response = TransportResponse(
      status: status, headers: ["content-type": type], body: try JSONEncoder.muster().encode(body))
    lock.withLock { responses[call] = response }
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    try lock.withLock {
      guard !isOffline else { throw URLError(.notConnectedToInternet) }
      let path = request.url.path.replacingOccurrences(of: "/api/v1", with: "")
      switch "\(request.method) \(path)" {
      case "POST /auth/login": return try logIn(request)
      case _ where hasEndedSession: return try problem(401, .sessionEnded)
      case let call where call.hasPrefix("POST /cache/validate/"): return try validate(request)
      case let call:
        received.append(request)
        return try responses[call] ?? problem(404, .routeNotFound)
      }
    }
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    throw URLError(.notConnectedToInternet)
  }

  private func logIn(_ request: TransportRequest) throws -> TransportResponse {
    let body = try JSONDecoder().decode([String: String].self, from: request.body ?? Data())
    guard body["password"] == Self.password else { return try problem(401, .wrongCredentials) }
    let user = User(id: Self.user, username: "ana", displayName: "Ana Duarte", createdAt: .distantPast)
    let tokens = Tokens(user: user, accessToken: "access", refreshToken: "refresh", expiresIn: 900)
    return try json(tokens)
  }

  private func validate(_ request: TransportRequest) throws -> TransportResponse {
    let claims = try JSONDecoder().decode([String: JSONValue].self, from: request.body ?? Data())
    let verdicts = claims.map { name, claim in (name, verdict(on: name, claim["timestamp"]?.string ?? claim.string)) }
    return try json(Dictionary(uniqueKeysWithValues: verdicts))
  }

  private func verdict(on name: String, _ held: String?) -> Verdict {
    guard let collection = CacheCollection(rawValue: name) else { return Verdict(invalidate: true) }
    let stamp = Stamp(rawValue: "2026-05-01T09:30:00.00000\(stamps[collection] ?? 0)Z")
    guard held != stamp.rawValue else { return Verdict(invalidate: false, timestamp: stamp) }
    // Digests that the app does not have yet: everything comes.
    let items = (collections[collection] ?? []).map { (key(of: $0, in: collection), $0) }
    let changed = items.map { key, item in (key, Changed(digest: "\(key)\(stamp)", item: item)) }
    return Verdict(
      invalidate: true, timestamp: stamp, keys: items.map(\.0), changed: Dictionary(uniqueKeysWithValues: changed))
  }

  private func key(of item: JSONValue, in collection: CacheCollection) -> String {
    collection.isSingleObject ? "me" : item["id"]?.string ?? item["event"]?["id"]?.string ?? ""
  }

  private func problem(_ status: Int, _ type: Problem.Slug) throws -> TransportResponse {
    try json(Problem(type: type, title: "", status: status), status)
  }

  private func json(_ body: some Encodable, _ status: Int = 200) throws -> TransportResponse {
    TransportResponse(
      status: status, headers: ["content-type": "application/json"], body: try JSONEncoder.muster().encode(body))
  }
}
