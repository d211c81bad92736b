import Foundation
import Testing

@testable import MusterKit

/// A captive portal or a proxy that responds in place of the service.
@MainActor @Suite struct ForeignResponseTests {
  private let event = ScriptedServer.event(1)

  nonisolated static let foreign: [TransportResponse] = [
    .html(status: 200), .html(status: 403), .html(status: 404), .html(status: 409), .html(status: 511),
    TransportResponse(status: 200), TransportResponse(status: 403),
    .json(#"{"error":"blocked"}"#, status: 403), .json(#"{"type":"event-cancelled","status":409}"#, status: 409),
    .problem("about:blank", status: 404),
    TransportResponse(status: 302, headers: ["location": "https://portal.example/"]),
  ]

  private func run(
    _ response: TransportResponse, _ write: Write, _ body: @MainActor (TestStore, ScriptedServer) async throws -> Void
  ) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try server.set(.blocks, [Block(user: ScriptedServer.ben, since: ScriptedServer.noon)])
      try await test.store.refresh()
      server.fail { $0.isWrite ? .foreign(response) : .none }
      try await test.store.perform(write)
      _ = await failure { try await test.store.refresh() }
      try await body(test, server)
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      let keys = server.received(\.isWrite).map(\.key)
      #expect(keys.count > 1 && Set(keys).count == 1)
    }
  }

  private func expectWaiting(_ test: TestStore) {
    #expect(test.store.outbox.pending.map(\.isSent) == [false])
    #expect(test.store.outbox.refusals.isEmpty && test.store.lastError != nil)
  }

  @Test(arguments: foreign + [.noContent])
  func `a write whose response has a body stays in the outbox`(response: TransportResponse) async throws {
    try await run(response, .answer(.going, to: event.id)) { test, _ in
      expectWaiting(test)
      #expect(test.store.events.items.map(\.myStatus) == [.going])
    }
  }

  @Test(arguments: foreign + [.json("{}")])
  func `a write whose response has no body stays in the outbox`(response: TransportResponse) async throws {
    try await run(response, .unblock(ScriptedServer.ben.id)) { test, _ in expectWaiting(test) }
  }
}
