import Foundation
import Testing

@testable import MusterClient

/// Writes that can no longer be sent safely.
@MainActor @Suite struct UnknownOutcomeTests {
  private let event = ScriptedServer.event(1)
  private let draft = EventDraft(
    title: "Quiz", startTime: ScriptedServer.noon.addingTimeInterval(99_999), timeZone: "Europe/Lisbon")

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test, server)
    }
  }

  @Test func `a write that was never sent for 23 hours did not happen`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(event: event.id, .going))
      test.ahead.withLock { $0 = 24 * 3600 }
      try await test.relaunch()
      try await test.store.refresh()
      #expect(server.received(\.isWrite).isEmpty)
      #expect(test.store.outbox.refusals.map(\.reason) == [.expired])
      #expect(test.store.outbox.refusals.first?.isUnknown == false)
    }
  }

  @Test func `a write with an unknown outcome can be sent again as a new one, or be dismissed`() async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(.createEvent(draft))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      test.ahead.withLock { $0 = 24 * 3600 }
      try await test.relaunch()
      try await test.store.refresh()
      let unknown = try #require(test.store.outbox.refusals.first)
      #expect(unknown.isUnknown && unknown.write.name == "createEvent" && test.store.outbox.pending.isEmpty)
      // It had happened.
      #expect(test.store.events.items.map(\.title) == ["Event 1", "Quiz"])

      try await test.store.sendAgain(unknown)
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.map(\.write) == [unknown.write])
      try await test.store.refresh()
      let keys = server.received(\.isWrite).map(\.key)
      #expect(keys.count == 2 && Set(keys).count == 2)
      #expect(test.store.events.items.map(\.title) == ["Event 1", "Quiz", "Quiz"])
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }
}
