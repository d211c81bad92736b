import Foundation
import MusterKit
import Synchronization

// store-benchmark [EVENTS] [WRITES]: measures for how long a store with many events holds up the main actor, while it
// loads, validates, takes writes without a network, sends them and shows changes. Needs no service.
let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
let (eventCount, writeCount) = (arguments.first ?? 5000, arguments.dropFirst().first ?? 50)

/// A service in memory with a list of events, by another user. It accepts all answers, and remembers them.
final class EventServer: Transport {
  struct State {
    var events: [Event]
    var version = 1
    var isOffline = false
  }

  struct Offline: Error {}

  /// The number of new items in a verdict: some 256 KiB.
  static let newLimit = 300
  static let noon = Date(timeIntervalSince1970: 1_900_000_000)
  static let host = Person(id: User.ID(), username: "ben", displayName: "Ben")

  let state: Mutex<State>
  let user = User(id: User.ID(), username: "ana", displayName: "Ana", createdAt: EventServer.noon)

  init(_ count: Int) {
    state = Mutex(
      State(
        events: (0..<count).map { number in
          Event(
            id: Event.ID(), title: "Event \(number)", note: "Bring a towel, a ball and something to share.",
            startTime: Self.noon.addingTimeInterval(Double(number) * 60), timeZone: .gmt,
            location: Location(name: "The old quarry"), status: .scheduled, creator: Self.host, hosts: [Self.host],
            version: 1, createdAt: Self.noon, updatedAt: Self.noon, myRole: .guest, myStatus: .invited,
            counts: Counts(invited: 20, going: 3))
        }))
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let state = state.withLock { $0 }
    if state.isOffline { throw Offline() }
    let parts = request.url.pathComponents
    if request.method == "PUT", let id = parts.dropLast(2).last.flatMap({ Event.ID($0) }) {
      let answered = self.state.withLock { state -> Event? in
        guard let place = state.events.firstIndex(where: { $0.id == id }) else { return nil }
        state.events[place].myStatus = .going
        state.version += 1
        return state.events[place]
      }
      return try Self.json(answered)
    }
    if request.method == "POST", parts.last == "events" { return try Self.json(state.events.first) }
    if parts.contains("validate") { return try verdicts(on: request.body, state) }
    return TransportResponse(status: 404)
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { throw Offline() }

  private func stamp(_ state: State) -> Stamp { Stamp(rawValue: "2026-05-01T09:00:00.\(100_000 + state.version)Z") }

  private func verdicts(on body: Data?, _ state: State) throws -> TransportResponse {
    let claims = try JSONDecoder().decode([String: JSONValue].self, from: body ?? Data())
    var verdicts = claims.mapValues { _ in Verdict(invalidate: true, timestamp: stamp(state), parts: []) }
    verdicts["profile"]?.parts = [ListPart(digest: "profile----", item: try JSONValue(encoding: user))]
    guard let claim = claims["events"] else { return try Self.json(verdicts) }
    guard claim.string ?? claim["timestamp"]?.string != stamp(state).rawValue else {
      verdicts["events"] = Verdict(invalidate: false, timestamp: stamp(state))
      return try Self.json(verdicts)
    }
    let start = claim["cursor"]?.string.flatMap { Int($0) } ?? 0
    let held = Array((claim["held"]?.string ?? "").utf8)
    let places = Dictionary(
      stride(from: 0, to: held.count, by: 11).map { (String(decoding: held[$0..<$0 + 11], as: UTF8.self), $0 / 11) }
    ) { $1 }
    guard case .integer(let limit)? = claim["limit"] else { return try Self.json(verdicts) }
    var (parts, new): ([ListPart], Int) = ([], 0)
    for (place, event) in state.events.enumerated().dropFirst(start).prefix(limit) where new < Self.newLimit {
      let digest = Self.digest(place, event)
      if let first = places[digest] {
        parts.append(ListPart(first: first, count: 1))
      } else {
        new += 1
        parts.append(ListPart(digest: digest, item: try JSONValue(encoding: event)))
      }
    }
    let end = start + parts.count
    verdicts["events"] = Verdict(
      invalidate: true, timestamp: stamp(state), nextCursor: end < state.events.count ? "\(end)" : nil, parts: parts)
    return try Self.json(verdicts)
  }

  private static func digest(_ place: Int, _ event: Event) -> String {
    "\(1_000_000 + place)-\("\(event.myStatus)".prefix(3))"
  }

  private static func json(_ value: some Encodable) throws -> TransportResponse {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    return TransportResponse(
      status: 200, headers: ["content-type": "application/json"], body: try encoder.encode(value))
  }
}

extension JSONValue {
  init(encoding value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    self = try JSONDecoder().decode(JSONValue.self, from: encoder.encode(value))
  }
}

/// Asks the main actor for a sign of life, again and again, and keeps the longest wait.
final class Heartbeat: Sendable {
  private let longest = Mutex(Duration.zero)
  private let task = Mutex<Task<Void, Never>?>(nil)

  func start() {
    let beats = Task.detached { [weak self] in
      while !Task.isCancelled, let self {
        let start = ContinuousClock.now
        await MainActor.run {}
        let wait = ContinuousClock.now - start
        self.longest.withLock { $0 = max($0, wait) }
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
    task.withLock { $0 = beats }
  }

  /// Runs a phase.
  ///
  /// - Returns: the longest wait in it.
  @MainActor func longest(during body: @MainActor () async throws -> Void) async throws -> Duration {
    try await Task.sleep(for: .milliseconds(20))
    longest.withLock { $0 = .zero }
    try await body()
    try await Task.sleep(for: .milliseconds(20))
    return longest.withLock { $0 }
  }

  func stop() { task.withLock { $0?.cancel() } }
}

@MainActor func measure() async throws {
  let server = EventServer(eventCount)
  let tokens = MemoryTokenStore(
    StoredTokens(accessToken: "a", refreshToken: "r", accessExpiresAt: .distantFuture, user: server.user.id))
  guard let url = URL(string: "http://muster.test") else { return }
  let client = MusterClient(baseURL: url, tokens: tokens, transport: server, retries: .never)
  let folder = FileManager.default.temporaryDirectory.appending(path: "store-benchmark-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: folder) }
  let ids = server.state.withLock { $0.events.map(\.id) }
  let heart = Heartbeat()
  heart.start()
  defer { heart.stop() }
  func report(_ phase: String, _ body: @MainActor () async throws -> Void) async throws {
    let longest = try await heart.longest(during: body)
    print("\(phase): \(longest.formatted(.units(allowed: [.milliseconds], fractionalPart: .show(length: 1))))")
  }

  var store = try MusterStore(client: client, folder: folder)
  try await report("first refresh of \(eventCount) events") { try await store.refresh() }
  precondition(store.events.items.count == eventCount)
  try await report("launch from the copies") {
    store = try MusterStore(client: client, folder: folder)
    await store.load()
  }
  precondition(store.events.items.count == eventCount)
  try await report("validation without a change") { try await store.refresh() }
  server.state.withLock { state in
    state.events[7].title = "Changed"
    state.events[7].myStatus = .maybe
    state.version += 1
  }
  try await report("validation with a change") { try await store.refresh() }
  server.state.withLock { $0.isOffline = true }
  try await report("\(writeCount) answers without a network") {
    for id in ids.suffix(writeCount) { try await store.perform(.answer(.going, to: id)) }
  }
  try await report("a new event without a network") {
    try await store.perform(.createEvent(EventDraft(title: "Quiz", startTime: EventServer.noon)))
  }
  precondition(store.events.items.count == eventCount + 1)
  try await report("a refresh that fails") { try? await store.refresh() }
  try await report("launch with \(writeCount + 1) pending writes") {
    store = try MusterStore(client: client, folder: folder)
    await store.load()
  }
  server.state.withLock { $0.isOffline = false }
  try await report("sending them all, and the validation") { try await store.refresh() }
  precondition(store.outbox.pending.isEmpty && store.events.items.count == eventCount)
}

try await measure()
