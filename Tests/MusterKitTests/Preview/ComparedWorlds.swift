import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit

/// The demo user ana at a real service, and in a preview that begins where the service does.
final class ComparedWorlds: Sendable {
  /// A request to both, such as `PUT /events/@porto/invitations/me {"status": "going"}`.
  struct Step: Sendable {
    let text: String
    /// A name for the id in the response.
    var saves: String?
    var version: Int?
  }

  /// A response without what differs by nature: times, stamps, and the ids and texts that the two make up.
  struct Outcome: Sendable, Equatable, CustomStringConvertible {
    let status: Int
    let body: JSONValue

    var description: String { "\(status) \(body.text)" }

    /// The fields of a 422, with what is wrong with them, but not those of some members.
    func invalidFields(butNot members: Set<String>) -> [String] {
      guard status == 422, case .array(let errors)? = body["errors"] else { return [] }
      return errors.compactMap(\.string).filter { error in !members.contains { error.hasPrefix("\($0) ") } }
    }

    /// Where this differs from another response.
    func differences(from other: Outcome) -> [String] {
      status == other.status && status < 400
        ? body.differences(from: other.body, at: "") : ["\(self)", "\(other)"]
    }
  }

  struct World: Sendable {
    let url: URL
    let transport: any Transport
    let token: String
    /// The ids that this world has made up, by their names.
    let made = Locked<[String: String]>([:])
  }

  let service: World
  let preview: World

  /// - Parameter changes: of the demo, before anything is read.
  init(_ server: MusterServer, in folder: URL, changes: [SQL]) async throws {
    try await server.seedDemo()
    let database = server.databaseURL
    try await ScriptConnection.run(database, timeout: .seconds(60)) { for change in changes { try $0.rows(change) } }
    let tokens = MemoryTokenStore()
    let client = MusterClient(baseURL: server.url, tokens: tokens)
    _ = try await client.auth.logIn(as: "ana", password: "plans-with-friends")
    let access = try #require(tokens.load()).accessToken
    service = World(url: server.url, transport: URLSessionTransport(), token: access)
    try await Self.export(service, to: folder)
    let transport = try PreviewTransport(folder: folder)
    preview = World(url: transport.baseURL, transport: transport, token: transport.tokens.accessToken)
  }

  /// Writes what ana sees of the service, as `muster seed export` writes the demo.
  private static func export(_ world: World, to folder: URL) async throws {
    let demo = try await ExportedDemo.folder
    try FileManager.default.copyItem(at: demo.appending(path: "rules.json"), to: folder.appending(path: "rules.json"))
    let calls = Locked<[JSONValue]>([])
    @Sendable func read(_ path: String, mayFail: Bool = false) async throws -> JSONValue {
      let response = try await world.transport.send(request(world, "GET", path))
      if response.status != 200 && mayFail { return .null }
      try #require(response.status == 200, "\(path)")
      let file = "\(calls.value.count).json"
      try response.body.write(to: folder.appending(path: file))
      calls.change {
        $0.append(
          .object([
            "method": .string("GET"), "path": .string("/api/v1" + path), "status": .integer(200),
            "file": .string(file),
          ]))
      }
      return try JSONDecoder.muster().decode(JSONValue.self, from: response.body)
    }
    let me = try await read("/users/me")
    for path in [
      "/friends", "/friend-requests?direction=incoming", "/friend-requests?direction=sent", "/invitations", "/blocks",
      "/notifications", "/notification-preferences", "/users/recommended", "/devices",
    ] { _ = try await read(path) }
    for path in ["/events", "/events?when=past"] {
      guard case .array(let events)? = try await read(path)["items"] else { continue }
      for id in events.compactMap({ $0["id"]?.string }) {
        _ = try await read("/events/\(id)/invitations")
        _ = try await read("/events/\(id)/links", mayFail: true)
      }
    }
    for id in people.values where id != me["id"]?.string { _ = try await read("/users/\(id)", mayFail: true) }
    let index: JSONValue = .object([
      "baseUrl": .string("http://muster.test"), "time": .string(WireTime.text(.now)), "user": me["id"] ?? .null,
      "calls": .array(calls.value),
    ])
    try JSONEncoder.muster().encode(index).write(to: folder.appending(path: "index.json"))
  }

  // MARK: Requests

  /// The responses of the two.
  func outcomes(of step: Step) async throws -> (service: Outcome, preview: Outcome) {
    (try await outcome(of: step, in: service), try await outcome(of: step, in: preview))
  }

  private func outcome(of step: Step, in world: World) async throws -> Outcome {
    let parts = step.text.split(separator: " ", maxSplits: 2).map(String.init)
    var request = Self.request(
      world, parts[0], Self.named(parts[1], world), parts.count > 2 ? Self.named(parts[2], world) : nil)
    request.headers["If-Match"] = step.version.map { "\"\($0)\"" }
    let response = try await Self.response(to: request, in: world)
    guard !response.body.isEmpty else { return Outcome(status: response.status, body: .null) }
    let body = try JSONDecoder.muster().decode(JSONValue.self, from: response.body)
    if let name = step.saves, let id = body["id"]?.string { world.made.change { $0[name] = id } }
    if response.status >= 400 { return Outcome(status: response.status, body: Self.problem(body)) }
    return Outcome(status: response.status, body: Self.shown(body, world))
  }

  /// On a busy machine, the service refuses requests with a 503 when it has not read the ended sessions for a second.
  /// Nothing was changed then, so the request is sent again, for half a minute at most.
  private static func response(to request: TransportRequest, in world: World) async throws -> TransportResponse {
    let end = ContinuousClock.now + .seconds(30)
    while true {
      let response = try await world.transport.send(request)
      guard response.status == 503, .now < end else { return response }
      try await Task.sleep(for: .milliseconds(200))
    }
  }

  private static func request(
    _ world: World, _ method: String, _ path: String, _ body: String? = nil
  ) -> TransportRequest {
    let url = URL(string: "\(world.url.absoluteString)/api/v1\(path)") ?? world.url
    var headers = ["Authorization": "Bearer \(world.token)"]
    if body != nil { headers["Content-Type"] = "application/json" }
    return TransportRequest(method: method, url: url, headers: headers, body: body.map { Data($0.utf8) })
  }

  /// Replaces names such as `@ben`, the longest first.
  private static func named(_ text: String, _ world: World) -> String {
    let ids = people.merging(things) { $1 }.merging(world.made.value) { $1 }
    return ids.sorted { $0.key.count > $1.key.count }.reduce(text) { $0.replacing("@\($1.key)", with: $1.value) }
  }

  private static func problem(_ body: JSONValue) -> JSONValue {
    var errors: [String] = []
    if case .array(let listed)? = body["errors"] {
      errors = listed.map { "\($0["field"]?.string ?? "") \($0["code"]?.string ?? "")" }.sorted()
    }
    return .object(["type": body["type"] ?? .null, "errors": .array(errors.map { .string($0) })])
  }

  private static let changing: Set = [
    "createdAt", "updatedAt", "answeredAt", "since", "readAt", "invitedAt", "timestamp", "url", "webcalUrl",
    "accessToken", "refreshToken", "lastUsedAt", "message", "locKey", "locArgs", "nextCursor", "expiresIn",
  ]

  private static func shown(_ value: JSONValue, _ world: World) -> JSONValue {
    switch value {
    case .object(let members):
      var kept: [String: JSONValue] = [:]
      for (name, value) in members where value != .null && !changing.contains(name) { kept[name] = shown(value, world) }
      if case .array(let guests)? = kept["participants"] {
        kept["participants"] = .array(guests.sorted { $0["id"]?.string ?? "" < $1["id"]?.string ?? "" })
      }
      return .object(kept)
    case .array(let values): return .array(values.map { shown($0, world) })
    case .string(let text):
      if let name = world.made.value.first(where: { $0.value == text })?.key { return .string("@\(name)") }
      // An id that no step has named.
      let isMade = UUID(uuidString: text) != nil && !text.hasPrefix("01900000-0000-7000-80")
      return isMade ? .string("an id") : value
    default: return value
    }
  }

  // MARK: Names

  static let people = numbered(
    "8000", ["ana", "ben", "cleo", "dev", "emre", "fatima", "goran", "hana", "ines", "jonas", "kai", "lina"])

  private static let things =
    numbered(
      "8002",
      [
        "pasta", "archived", "studio", "climbing", "trail", "concert", "lake", "kissaten", "birthday", "couscous",
        "film", "walk", "housewarming", "terrace", "porto", "party",
      ]
    )
    .merging(numbered("8001", ["from-fatima", "from-goran", "to-ines", "to-jonas"])) { $1 }
    .merging(numbered("8005", ["marta", "nils"])) { $1 }
    .merging(numbered("8004", ["planted"])) { $1 }
    .merging(["unknown": "01900000-0000-7000-8000-0000000000ff"]) { $1 }

  private static func numbered(_ kind: String, _ names: [String]) -> [String: String] {
    var ids: [String: String] = [:]
    for (index, name) in names.enumerated() {
      let number = String(index + 1, radix: 16)
      ids[name] = "01900000-0000-7000-\(kind)-\(String(repeating: "0", count: 12 - number.count))\(number)"
    }
    return ids
  }
}

extension ComparedWorlds {
  /// The types of the notifications that arrive on the streams of the two while something happens.
  func banners(
    of body: () async throws -> Void
  ) async throws -> (service: [NotificationType], preview: [NotificationType]) {
    let (one, other) = (try await Banners(service), try await Banners(preview))
    try await body()
    // The worker of the service may still be busy.
    try await eventually(within: .seconds(60)) { one.types.value.count >= other.types.value.count }
    return (one.types.value, other.types.value)
  }

  /// Reads a stream until it is released.
  private final class Banners: Sendable {
    let types = Locked<[NotificationType]>([])
    private let reading: Task<Void, any Error>

    init(_ world: World) async throws {
      let tokens = StoredTokens(
        accessToken: world.token, refreshToken: "none", accessExpiresAt: .distantFuture, user: ExportedDemo.ana)
      let client = MusterClient(
        baseURL: world.url, tokens: MemoryTokenStore(tokens), transport: world.transport, retries: .never)
      let isOpen = Locked(false)
      reading = Task { [types] in
        for try await event in client.notifications.stream() {
          switch event {
          case .connected: isOpen.change { $0 = true }
          case .notification(let item): types.change { $0.append(item.type) }
          case .changed: break
          }
        }
      }
      try await eventually(within: .seconds(30)) { isOpen.value }
    }

    deinit { reading.cancel() }
  }
}

extension JSONValue {
  fileprivate var text: String {
    let json = try? JSONEncoder.muster().encode(self)
    return json.map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  fileprivate func differences(from other: JSONValue, at place: String) -> [String] {
    switch (self, other) {
    case (.object(let mine), .object(let others)):
      return Set(mine.keys).union(others.keys).sorted().flatMap {
        (mine[$0] ?? .null).differences(from: others[$0] ?? .null, at: "\(place).\($0)")
      }
    case (.array(let mine), .array(let others)) where mine.count == others.count:
      return zip(mine, others).enumerated().flatMap { $1.0.differences(from: $1.1, at: "\(place)[\($0)]") }
    default: return self == other ? [] : ["\(place): \(text) and \(other.text)"]
    }
  }
}
