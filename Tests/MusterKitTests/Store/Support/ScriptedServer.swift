import Foundation

@testable import MusterKit

/// A small model of the service in memory, with one user, `ana`. Its lists, stamps and deltas are as in the contract;
/// its writes are as simple as the tests of the store need them. The tests script what goes wrong.
final class ScriptedServer: Transport {
  enum Fault: Sendable {
    case none
    /// The request does not leave the phone.
    case keep
    /// The request does not leave the phone, which waits for it.
    case stall
    /// The request is lost.
    case loseRequest
    /// The request has its effect, and the response is lost.
    case loseResponse
    case status(Int, Problem.Slug, retryAfter: Int? = nil)
    /// A response that is not Muster's.
    case portal
    case foreign(TransportResponse)
  }

  struct Received: Sendable, Equatable {
    let method: String
    let path: String
    let query: [String: String]
    let key: String?
    let ifMatch: String?
    let body: JSONValue?
  }

  struct Item: Sendable {
    let key: String
    var json: JSONValue
    /// The changes of all lists, counted, and the place of the item.
    var digest: String
  }

  struct List: Sendable {
    var items: [Item] = []
    var stamp: Stamp = "2026-05-01T09:00:00.000000Z"
  }

  struct State {
    var lists = Dictionary(uniqueKeysWithValues: CacheCollection.allCases.map { ($0, List()) })
    /// The past events; nil as in a service that does not know the list.
    var past: List?
    var clock = 0
    var received: [Received] = []
    /// Responses by idempotency key, with the requests.
    var responses: [String: (response: TransportResponse, request: Received, at: Date)] = [:]
    var faults: @Sendable (Received) -> Fault = { _ in .none }
    /// Runs before a request is handled.
    var before: @Sendable (Received) -> Void = { _ in }
    /// Runs after a request was handled, before its response is on its way.
    var after: @Sendable (Received) -> Void = { _ in }
    var stream: AsyncThrowingStream<Data, any Error>.Continuation?
    /// Where each stream began: its `Last-Event-ID`.
    var streamStarts: [String?] = []
    var isOffline = false
    /// The server's time of day. Keys are forgotten after a day.
    var time = ScriptedServer.noon
    /// Whether guests who want to go get a place.
    var hasRoom = true
    /// When the user has answered, by the ids of events.
    var answeredAt: [String: Date] = [:]
    /// The number of items in a verdict.
    var partsLimit = Int.max
    /// The number of changed items in a response.
    var changedLimit = Int.max
  }

  struct Lost: Error {}

  let state = Guarded(State())

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    var response = try await answer(request)
    response.headers["date"] = response.headers["date"] ?? ServiceClock.text(state.withLock { $0.time })
    return response
  }

  private func answer(_ request: TransportRequest) async throws -> TransportResponse {
    let received = Received(request)
    let (before, faults, after, isOffline) = state.withLock { state in
      state.received.append(received)
      return (state.before, state.faults, state.after, state.isOffline)
    }
    if isOffline { throw UnsentRequest(Lost()) }
    before(received)
    switch faults(received) {
    case .none: break
    case .keep: throw UnsentRequest(Lost())
    case .stall:
      try? await Task.sleep(for: .seconds(3600))
      throw UnsentRequest(Lost())
    case .loseRequest: throw Lost()
    case .loseResponse:
      _ = try respond(to: received)
      throw Lost()
    case .status(let status, let slug, let retryAfter):
      return try Self.problem(status, slug, retryAfter: retryAfter)
    case .foreign(let response): return response
    case .portal: return TransportResponse(status: 200, body: Data("<html>Log in to this network</html>".utf8))
    }
    let response = try respond(to: received)
    after(received)
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    let (chunks, continuation) = AsyncThrowingStream<Data, any Error>.makeStream()
    let isOffline = state.withLock { state in
      state.stream = continuation
      state.streamStarts.append(request.headers["Last-Event-ID"])
      return state.isOffline
    }
    if isOffline { throw Lost() }
    continuation.yield(Data(": open\nretry: 2000\n\n".utf8))
    return TransportStream(status: 200, headers: ["content-type": "text/event-stream"], chunks: chunks)
  }

  private func respond(to request: Received) throws -> TransportResponse {
    try state.withLock { state in
      if let key = request.key, let first = state.responses[key], state.time < first.at.addingTimeInterval(86_400) {
        return try first.request == request ? first.response : Self.problem(422, .idempotencyKeyReused)
      }
      let response = try state.respond(to: request)
      if let key = request.key, response.status < 300 { state.responses[key] = (response, request, state.time) }
      return response
    }
  }

  static func problem(_ status: Int, _ slug: Problem.Slug, retryAfter: Int? = nil) throws -> TransportResponse {
    let problem = Problem(type: slug, title: "\(status)", status: status, requestId: "r")
    var headers = ["content-type": "application/problem+json"]
    headers["retry-after"] = retryAfter.map(String.init)
    return TransportResponse(status: status, headers: headers, body: try JSONEncoder.muster().encode(problem))
  }
}

extension ScriptedServer.Received {
  init(_ request: TransportRequest) {
    let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
    method = request.method
    path = request.url.path.replacingOccurrences(of: "/api/v1", with: "")
    query = Dictionary(items.map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
    key = request.headers["Idempotency-Key"]
    ifMatch = request.headers["If-Match"]
    body = request.body.flatMap { try? JSONDecoder.muster().decode(JSONValue.self, from: $0) }
  }

  var isValidation: Bool { path.hasPrefix("/cache/validate/") }
  var isWrite: Bool { method != "GET" && !isValidation }
}

extension ScriptedServer {
  static let ana = Person(id: id(1), username: "ana", displayName: "Ana")
  static let ben = Person(id: id(2), username: "ben", displayName: "Ben")
  static let cleo = Person(id: id(3), username: "cleo", displayName: "Cleo")
  static let noon = Date(timeIntervalSince1970: 1_777_000_000)

  /// A server with ana's profile and preferences.
  static func make() throws -> ScriptedServer {
    let server = ScriptedServer()
    let profile = User(id: ana.id, username: ana.username, displayName: ana.displayName, createdAt: noon)
    try server.set(.profile, [profile])
    try server.set(.notificationPreferences, [NotificationPreferences([.eventUpdated: true])])
    return server
  }

  /// Eleven characters, as the service's digests.
  static func digest(_ change: Int, _ place: Int) -> String { String("\(10_000 + change)-\(10_000 + place)") }

  /// Takes joined digests apart.
  static func digests(_ held: String) -> [String] {
    let held = Array(held)
    return stride(from: 0, to: held.count, by: 11).map { String(held[$0..<min($0 + 11, held.count)]) }
  }

  /// An id that tests can name.
  static func id<Thing>(_ number: Int) -> Identifier<Thing> {
    let digits = String(number, radix: 16)
    let text = "01900000-0000-7000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    return Identifier(text) ?? Identifier()
  }

  /// Another user's event, to which ana is invited.
  static func event(_ number: Int, title: String? = nil, status: GuestStatus = "invited") -> Event {
    Event(
      id: id(1000 + number), title: title ?? "Event \(number)",
      startTime: noon.addingTimeInterval(Double(number) * 3600),
      timeZone: .lisbon, status: .scheduled, creator: ben, hosts: [ben], version: 1, createdAt: noon, updatedAt: noon,
      myRole: .guest, myStatus: status, counts: Counts(invited: 1))
  }

  /// Ben, on a guest list.
  static let guest = Guest(id: Guest.ID(ben.id), user: ben, name: ben.displayName, status: .invited)

  /// Replaces a list, and moves its stamp.
  func set(_ collection: CacheCollection, _ values: [some Encodable]) throws {
    let items = try values.map { try JSONValue(encoding: $0) }
    state.withLock { $0.replace(collection, items) }
  }

  /// Replaces the past events, all with new digests; nil as in a service that does not know the list.
  func setPast(_ events: [Event]?) throws {
    let items = try events?.map { try JSONValue(encoding: $0) }
    state.withLock { $0.replacePast(items) }
  }

  func received(_ isMatch: (Received) -> Bool = { _ in true }) -> [Received] {
    state.withLock { $0.received.filter(isMatch) }
  }

  func fail(_ faults: @escaping @Sendable (Received) -> Fault) { state.withLock { $0.faults = faults } }

  /// Lets time pass on the server.
  func pass(hours: Double) { state.withLock { $0.time += hours * 3600 } }

  func takeOffline(_ isOffline: Bool = true) { state.withLock { $0.isOffline = isOffline } }
}
