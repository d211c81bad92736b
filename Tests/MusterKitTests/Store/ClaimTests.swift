import Foundation
import Testing

@testable import MusterKit

/// `isUpToDate` is true only while it is proved.
@MainActor @Suite struct ClaimTests {
  private let event = ScriptedServer.event(1)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate)
      try await body(test, server)
    }
  }

  @Test func `a change that the stream announces ends the claim until it is validated`() async throws {
    try await run { test, server in
      try server.set(.events, [ScriptedServer.event(1, title: "Changed")])
      let stamp = try #require(server.state.withLock { $0.lists[.events]?.stamp })
      test.store.take(.changed([.events: stamp]))
      #expect(!test.store.events.isUpToDate && test.store.friends.isUpToDate)
      #expect(test.store.events.items.map(\.title) == ["Event 1"])
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && test.store.events.items.map(\.title) == ["Changed"])
    }
  }

  @Test func `a stamp of the stream is never stored with the items`() async throws {
    try await run { test, server in
      try server.set(.events, [ScriptedServer.event(1, title: "Changed")])
      let stamp = try #require(server.state.withLock { $0.lists[.events]?.stamp })
      test.store.take(.changed([.events: stamp]))
      try await test.relaunch()
      try await test.store.refresh()
      #expect(server.received().last?.body?["events"]?["timestamp"]?.string != stamp.rawValue)
      #expect(test.store.events.items.map(\.title) == ["Changed"])
    }
  }

  @Test func `an announced change that the copy has already invalidates nothing`() async throws {
    try await run { test, server in
      let stamp = try #require(server.state.withLock { $0.lists[.events]?.stamp })
      test.store.take(.changed([.events: stamp]))
      #expect(test.store.events.isUpToDate)
    }
  }

  @Test func `a validation that began before an invalidation does not cover it`() async throws {
    try await run { test, server in
      server.state.withLock { state in
        state.after = { [weak test] _ in
          // The response is made; then the list changes, and the stream is faster than the response.
          try? server.set(.events, [ScriptedServer.event(2)])
          DispatchQueue.main.sync { MainActor.assumeIsolated { test?.store.take(.changed([.events: "later"])) } }
          server.state.withLock { $0.after = { _ in } }
        }
      }
      try await test.store.refresh()
      #expect(!test.store.events.isUpToDate)
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && test.store.events.items.map(\.title) == ["Event 2"])
    }
  }

  @Test func `"up to date as of" is the time at which the request was sent`() async throws {
    try await run { test, server in
      let ahead = test.ahead
      server.state.withLock { $0.before = { _ in ahead.withLock { $0 = 3600 } } }
      try await test.store.refresh()
      #expect((test.store.events.upToDateAsOf ?? .distantFuture) < Date().addingTimeInterval(60))
    }
  }

  @Test func `a failed request ends all claims`() async throws {
    try await run { test, server in
      server.fail { _ in .status(503, "database-unavailable") }
      #expect(await failure(of: { try await test.store.refresh() })?.problem?.status == 503)
      #expect(!test.store.events.isUpToDate && !test.store.friends.isUpToDate && !test.store.isOffline)
      server.fail { _ in .loseResponse }
      _ = await failure(of: { try await test.store.refresh() })
      #expect(!test.store.events.isUpToDate && test.store.isOffline)
      server.fail { _ in .portal }
      _ = await failure(of: { try await test.store.refresh() })
      #expect(!test.store.events.isUpToDate)
      #expect(test.store.events.items.map(\.title) == ["Event 1"])
    }
  }

  @Test func `after another user's login, nothing is claimed, asked or sent`() async throws {
    try await run { test, server in
      try await test.logIn(ScriptedServer.ben)
      let count = server.received().count
      await #expect(throws: MusterError.loggedOut) { try await test.store.perform(.cancelEvent(event.id)) }
      #expect(await failure(of: { try await test.store.refresh() }) == .loggedOut)
      #expect(test.store.isLoggedOut && !test.store.events.isUpToDate)
      #expect(test.store.events.items.map(\.title) == ["Event 1"] && server.received().count == count)
    }
  }

  @Test func `connecting and losing the stream end all claims`() async throws {
    try await run { test, _ in
      test.store.take(.connected)
      #expect(!test.store.events.isUpToDate && !test.store.friends.isUpToDate)
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate)
      test.store.loseStream()
      #expect(!test.store.events.isUpToDate && !test.store.friends.isUpToDate)
    }
  }

  @Test func `a notification invalidates the inbox`() async throws {
    try await run { test, _ in
      let item = InboxItem(id: .init(), createdAt: .now, type: .eventInvited, message: "Come!")
      test.store.take(.notification(item))
      #expect(!test.store.notifications.isUpToDate && test.store.events.isUpToDate)
    }
  }

  @Test func `a list with a pending write makes no claim, until a validation after the write`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id))
      #expect(test.store.events.hasPendingWrites && !test.store.events.isUpToDate)
      #expect(test.store.invitations.hasPendingWrites && test.store.friends.isUpToDate)
      // Sent, but the validation fails.
      server.fail { $0.isValidation ? .loseResponse : .none }
      _ = await failure(of: { try await test.store.refresh() })
      #expect(test.store.outbox.pending.map(\.isSent) == [true])
      #expect(test.store.events.hasPendingWrites && !test.store.events.isUpToDate)
      #expect(test.store.events.items.map(\.myStatus) == [.going])
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(!test.store.events.hasPendingWrites && test.store.events.isUpToDate)
      #expect(test.store.outbox.pending.isEmpty)
    }
  }

  @Test func `inconsistent verdicts end the claim, and the copy stays`() async throws {
    try await run { test, server in
      try server.set(.events, [event, ScriptedServer.event(2)])
      server.state.withLock { $0.changedLimit = 0 }
      guard case .unexpectedResponse = await failure(of: { try await test.store.refresh() }) else {
        Issue.record("no error")
        return
      }
      #expect(!test.store.events.isUpToDate && test.store.friends.isUpToDate)
      #expect(test.store.events.items.map(\.title) == ["Event 1"])
    }
  }

  @Test func `a collection that the service does not know makes no claim, and does not hold up a refresh`() async throws
  {
    try await run { test, server in
      server.state.withLock { $0.lists[.blocks] = nil }
      try await test.store.refresh()
      #expect(!test.store.blocks.isLoaded && !test.store.blocks.isUpToDate && test.store.events.isUpToDate)
    }
  }
}
