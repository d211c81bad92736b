import Foundation
import MusterClient
import Postgres
import TestSupport
import Testing

/// Loses requests and responses of each call. Each write must have its effect exactly once all the same.
@Suite struct LostResponseTests {
  @Test func `every write is carried out once, whichever response is lost`() async throws {
    let shared = try await MusterServer.shared.value
    let undisturbed = try await run(at: shared.url) { _, _ in nil }
    let writes = undisturbed.sent.filter(\.isWrite)
    #expect(writes.count >= 22 && writes.allSatisfy { $0.key != nil })
    try await withThrowingTaskGroup(of: Void.self) { group in
      for point in writes.indices {
        if point >= 4 { _ = try await group.next() }
        group.addTask {
          let lost = try await run(at: shared.url, equals: undisturbed.outcome) { sent, writes in
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

  @Test(arguments: [LossyTransport.Loss.ofRequest, .ofResponse])
  func `every write is carried out once, even if each loses its first two attempts`(
    loss: LossyTransport.Loss
  ) async throws {
    let shared = try await MusterServer.shared.value
    let undisturbed = try await run(at: shared.url) { _, _ in nil }
    let lost = try await run(at: shared.url, equals: undisturbed.outcome) { sent, writes in
      sent.isWrite && !writes.isMultiple(of: 3) ? loss : nil
    }
    let (once, thrice) = (undisturbed.sent.filter(\.isWrite), lost.sent.filter(\.isWrite))
    #expect(thrice.count == 3 * once.count)
    #expect(Set(thrice.map(\.key)).count == once.count)
  }

  /// - Parameter loss: gets each request with the number of writes before it.
  private func run(
    at url: URL, equals expected: [String]? = nil,
    losing loss: @escaping @Sendable (_ sent: LossyTransport.Sent, _ writes: Int) -> LossyTransport.Loss?
  ) async throws -> (outcome: [String], sent: [LossyTransport.Sent]) {
    let transport = LossyTransport()
    let script = try await WriteScript(at: url, through: transport)
    transport.takeSent()
    let writes = Lock(0)
    transport.plan { sent in
      writes.withLock { writes in
        defer { if sent.isWrite { writes += 1 } }
        return loss(sent, writes)
      }
    }
    try await script.run()
    let sent = transport.takeSent()
    transport.plan { _ in nil }
    return (try await script.outcome(equals: expected, "\(sent.filter { $0.loss != nil })"), sent)
  }

  @Test func `writes and refreshes that lose their responses at every point end no session`() async throws {
    let hasty = try await MusterServer.hasty.value
    let shared = try await MusterServer.shared.value
    // Registered with tokens that have expired by the time of the script.
    let transport = LossyTransport()
    let rebased = Rebased(transport, from: hasty.url, to: shared.url)
    let script = try await WriteScript(at: hasty.url, through: rebased)
    let users = [script.ana, script.ben, script.cleo]
    var expired: [UUID: StoredTokens] = [:]
    for user in users { expired[user.id] = try user.tokens.load() }
    let end = try #require(expired.values.map(\.accessExpiresAt).max()).addingTimeInterval(1)
    try await eventually { Date.now > end }
    rebased.isOn = true
    let attempts = Lock<[String: Int]>([:])
    // Refreshes lose their first response, and so does each write, before and after the refresh.
    transport.plan { sent in
      guard sent.isWrite else { return nil }
      let what = sent.key ?? sent.body.map { String(decoding: $0, as: UTF8.self) } ?? sent.path
      return attempts.withLock { attempts in
        attempts[what, default: 0] += 1
        return (attempts[what] ?? 0) % 2 == 1 ? .ofResponse : nil
      }
    }
    let tokens = expired
    try await script.run { user in
      guard var stored = try user.tokens.load(), let old = tokens[user.id] else { return }
      // The client takes it for valid, and learns from the response that it is not.
      (stored.accessToken, stored.accessExpiresAt) = (old.accessToken, .now.addingTimeInterval(600))
      try user.tokens.save(stored)
    }
    transport.plan { _ in nil }
    #expect(transport.refreshes.count >= 2 * 22)
    for user in users {
      #expect(try await user.client.auth.sessions().items.count == 1)
      let inbox = try await user.client.notifications.list(limit: 100)
      #expect(!inbox.items.contains { $0.type == .sessionRevoked })
    }
    let undisturbed = try await run(at: shared.url) { _, _ in nil }
    _ = try await script.outcome(equals: undisturbed.outcome, "with refreshes")
  }
}

/// Sends requests to another server of the same database, once it is on.
private final class Rebased: Transport {
  private let inner: any Transport
  private let (old, new): (URL, URL)
  private let state = Lock(false)

  init(_ inner: any Transport, from old: URL, to new: URL) {
    (self.inner, self.old, self.new) = (inner, old, new)
  }

  var isOn: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    try await inner.send(rebased(request))
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    try await inner.open(rebased(request))
  }

  private func rebased(_ request: TransportRequest) -> TransportRequest {
    guard isOn, var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true) else { return request }
    var request = request
    (parts.host, parts.port) = (new.host(), new.port)
    request.url = parts.url ?? request.url
    return request
  }
}
