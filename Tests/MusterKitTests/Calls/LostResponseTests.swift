import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// Loses requests and responses of each call. Each write must have its effect exactly once all the same.
@Suite struct LostResponseTests {
  @Test(arguments: WriteScript.Part.allCases)
  func `every write is carried out once, whichever response is lost`(part: WriteScript.Part) async throws {
    let shared = try await MusterServer.shared.value
    let undisturbed = try await run(part, at: shared.url) { _, _ in nil }
    let writes = undisturbed.sent.filter(\.isWrite)
    #expect(writes.count > 20 && writes.allSatisfy { $0.key != nil })
    try await withThrowingTaskGroup(of: Void.self) { group in
      for point in writes.indices {
        if point >= 4 { _ = try await group.next() }
        group.addTask {
          let lost = try await run(part, at: shared.url, equals: undisturbed.outcome) { sent, writes in
            sent.isWrite && writes == point ? .ofResponse : nil
          }
          let repeated = lost.sent.filter(\.isWrite)
          #expect(repeated.count == writes.count + 1, "point \(point)")
          // The repeat had the same key, and got the response that was lost.
          #expect(repeated[point].key == repeated[point + 1].key)
          #expect(repeated[point].response == repeated[point + 1].response, "point \(point): \(repeated[point].path)")
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `the scripts have each act that changes something`() async throws {
    let shared = try await MusterServer.shared.value
    var acts: Set<String> = []
    for part in WriteScript.Part.allCases {
      for sent in try await run(part, at: shared.url, losing: { _, _ in nil }).sent where sent.isWrite {
        // A path with a name comes before one with a parameter in its place.
        let matching = Act.all.filter { $0.matches(sent.method, String(sent.path.prefix { $0 != "?" })) }
        acts.insert(try #require(matching.min { $0.parameterCount < $1.parameterCount }).name)
      }
    }
    // A validation changes nothing.
    let all = Act.all.filter { $0.needsToken && !$0.isRead && $0.name != "validateCache" }
    #expect(acts.symmetricDifference(all.map(\.name)) == WriteScript.missing)
  }

  @Test(arguments: [LossyTransport.Loss.ofRequest, .ofResponse], WriteScript.Part.allCases)
  func `every write is carried out once, even if each loses its first two attempts`(
    loss: LossyTransport.Loss, part: WriteScript.Part
  ) async throws {
    let shared = try await MusterServer.shared.value
    let undisturbed = try await run(part, at: shared.url) { _, _ in nil }
    let lost = try await run(part, at: shared.url, equals: undisturbed.outcome) { sent, writes in
      sent.isWrite && writes % 3 < 2 ? loss : nil
    }
    let once = undisturbed.sent.filter(\.isWrite)
    let thrice = lost.sent.filter(\.isWrite)
    #expect(thrice.count == 3 * once.count)
    #expect(Set(thrice.map(\.key)).count == once.count)
  }

  /// A busy server may refuse an attempt with 503, and did nothing then. Such a run has more attempts than planned, so it
  /// is repeated.
  ///
  /// - Parameter loss: gets each request with the number of writes before it.
  private func run(
    _ part: WriteScript.Part, at url: URL, equals expected: [String]? = nil,
    losing loss: @escaping @Sendable (_ sent: LossyTransport.Sent, _ writes: Int) -> LossyTransport.Loss?
  ) async throws -> (outcome: [String], sent: [LossyTransport.Sent]) {
    for _ in 0..<8 {
      let transport = LossyTransport()
      let script = try await WriteScript(part, at: url, through: transport)
      transport.takeSent()
      let writes = Lock(0)
      transport.plan { sent in
        writes.withLock { writes in
          defer { if sent.isWrite { writes += 1 } }
          return loss(sent, writes)
        }
      }
      do {
        try await script.run()
      } catch MusterError.refused(let problem) where problem.status == 503 {
        // It refused every attempt of one call.
        continue
      }
      let sent = transport.takeSent()
      transport.plan { _ in nil }
      let outcome = try await script.outcome(equals: expected, "\(sent.filter { $0.loss != nil })")
      if !sent.contains(where: { $0.status == 503 }) { return (outcome, sent) }
    }
    throw Unexpected("the server was busy in each of eight runs")
  }

  @Test(arguments: WriteScript.Part.allCases)
  func `writes and refreshes that lose their responses at every point end no session`(
    part: WriteScript.Part
  ) async throws {
    let hasty = try await MusterServer.hasty.value
    let shared = try await MusterServer.shared.value
    // Registered with tokens that have expired by the time of the script.
    let transport = LossyTransport()
    let expiring = ExpiringTransport(transport, to: shared.url)
    let script = try await WriteScript(part, at: hasty.url, through: expiring)
    let users = [script.ana, script.ben, script.cleo]
    let tokens = try users.map { try #require(try $0.tokens.load()) }
    let end = try #require(tokens.map(\.accessExpiresAt).max()).addingTimeInterval(1)
    try await eventually { Date.now > end }
    expiring.expire(tokens)
    transport.takeSent()
    let attempts = Tally<String>()
    // Each refresh loses its first response, and so does each write, before and after the refresh.
    transport.plan { sent in
      guard sent.isWrite else { return nil }
      let what = sent.key ?? sent.body.map { String(decoding: $0, as: UTF8.self) } ?? sent.path
      return attempts.count(what).isMultiple(of: 2) ? nil : .ofResponse
    }
    try await script.run()
    transport.plan { _ in nil }
    let (sent, refreshes) = (transport.sent, transport.refreshes)
    #expect(refreshes.count >= 2 * Set(sent.compactMap(\.key)).count)
    for user in users {
      #expect(try await user.client.auth.sessions().items.count == 1)
      let inbox = try await user.client.notifications.list(limit: 100)
      #expect(!inbox.items.contains { $0.type == .sessionRevoked })
    }
    let undisturbed = try await run(part, at: shared.url) { _, _ in nil }
    _ = try await script.outcome(equals: undisturbed.outcome, "with refreshes")
  }
}

/// Sends the first two attempts of each write with a token that has expired, without the client's knowledge.
private final class ExpiringTransport: Transport {
  private struct State {
    var expired: [User.ID: String] = [:]
    var attempts: [String: Int] = [:]
  }

  private let inner: any Transport
  private let url: URL
  private let state = Lock(State())

  /// - Parameter url: where requests go once there are expired tokens.
  init(_ inner: any Transport, to url: URL) {
    (self.inner, self.url) = (inner, url)
  }

  /// Begins to use these tokens.
  func expire(_ tokens: [StoredTokens]) {
    state.withLock { $0.expired = Dictionary(uniqueKeysWithValues: tokens.map { ($0.user, $0.accessToken) }) }
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    try await inner.send(replaced(request))
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    try await inner.open(replaced(request))
  }

  private func replaced(_ request: TransportRequest) -> TransportRequest {
    state.withLock { state in
      guard !state.expired.isEmpty, var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true) else {
        return request
      }
      var request = request
      (parts.host, parts.port) = (url.host(), url.port)
      request.url = parts.url ?? request.url
      guard let key = request.headers["Idempotency-Key"] else { return request }
      state.attempts[key, default: 0] += 1
      if state.attempts[key, default: 0] <= 2, let token = Self.user(of: request).flatMap({ state.expired[$0] }) {
        request.headers["Authorization"] = "Bearer \(token)"
      }
      return request
    }
  }

  /// The user in the token of a request.
  private static func user(of request: TransportRequest) -> User.ID? {
    let parts = request.headers["Authorization"]?.split(separator: ".") ?? []
    guard parts.count == 3 else { return nil }
    let text = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
    let padded = text + String(repeating: "=", count: (4 - text.count % 4) % 4)
    let claims = Data(base64Encoded: padded).flatMap { try? JSONDecoder().decode([String: JSONValue].self, from: $0) }
    return claims?["sub"]?.string.flatMap { User.ID($0) }
  }
}
