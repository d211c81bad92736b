import Foundation
import Testing

@testable import MusterKit

/// The work of a store by itself between ``MusterStore/start()`` and ``MusterStore/stop()``.
@MainActor @Suite struct RunningTests {
  private let event = ScriptedServer.event(1)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await body(test, server)
    }
  }

  @Test func `a started store catches up, and sends each write`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.events.isUpToDate }
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.wait { test.store.outbox.pending.isEmpty && test.store.events.isUpToDate }
      #expect(test.store.events.items.map(\.myStatus) == [.going])
      #expect(server.received(\.isWrite).count == 1)
    }
  }

  @Test func `a store that started without a network catches up when there is one`() async throws {
    try await run { test, server in
      server.takeOffline()
      test.store.start()
      try await test.wait { test.store.isOffline }
      try await test.store.perform(.createEvent(EventDraft(title: "Quiz", startTime: ScriptedServer.noon)))
      let tries = server.received().count
      try await test.wait { server.received().count > tries + 3 }
      #expect(!test.store.events.isLoaded)
      server.takeOffline(false)
      // The stream may still wait before its next attempt.
      try await test.wait {
        test.store.outbox.pending.isEmpty && test.store.events.isUpToDate && !test.store.isOffline
      }
      #expect(test.store.events.items.count == 2)
    }
  }

  @Test func `an announced change is read`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.events.isUpToDate }
      try server.set(.events, [ScriptedServer.event(2)])
      test.store.take(.changed([.events: try #require(server.state.withLock { $0.lists[.events]?.stamp })]))
      try await test.wait { test.store.events.isUpToDate }
      #expect(test.store.events.items.map(\.title) == ["Event 2"])
      // Only the announced lists are read.
      guard case .object(let claims) = server.received(\.isValidation).last?.body else { return }
      #expect(Array(claims.keys) == ["events"])
    }
  }

  @Test func `a change that comes through the stream is read, and a lost stream ends all claims at once`() async throws
  {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.life.isStreaming && test.store.events.isUpToDate }
      try server.set(.events, [ScriptedServer.event(2)])
      let stamp = try #require(server.state.withLock { $0.lists[.events]?.stamp })
      server.state.withLock { state in
        _ = state.stream?.yield(Data("event: changed\ndata: {\"events\": \"\(stamp)\"}\n\n".utf8))
      }
      try await test.wait { test.store.events.items.map(\.title) == ["Event 2"] && test.store.events.isUpToDate }
      server.fail { _ in .loseRequest }
      server.state.withLock { $0.stream?.finish() }
      try await test.wait { !test.store.friends.isUpToDate }
      #expect(!test.store.life.isStreaming && !test.store.events.isUpToDate)
    }
  }

  @Test func `starting twice is the same as once, and stopping ends the claims`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.events.isUpToDate }
      let count = server.received().count
      test.store.start()
      #expect(test.store.events.isUpToDate)
      test.store.stop()
      #expect(!test.store.events.isUpToDate && test.store.events.items.count == 1)
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && server.received().count <= count + 4)
    }
  }

  @Test func `a store without a session stops, keeps its data, and starts again after the login`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.events.isUpToDate }
      server.fail { _ in .status(401, .sessionEnded) }
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.wait { test.store.isLoggedOut }
      #expect(test.store.outbox.pending.count == 1 && test.store.events.items.map(\.myStatus) == [.going])
      #expect(!test.store.life.isRunning && !test.store.friends.isUpToDate)
      server.fail { _ in .none }
      try await test.logIn(ScriptedServer.ana)
      test.store.start()
      try await test.wait {
        test.store.outbox.pending.isEmpty && test.store.events.isUpToDate && !test.store.isLoggedOut
      }
    }
  }

  @Test func `a store that the app drops ends by itself`() async throws {
    try await run { test, _ in
      weak var dropped: MusterStore?
      do {
        let store = try await test.another()
        store.start()
        try await test.wait { store.events.isUpToDate }
        dropped = store
      }
      try await test.wait { dropped == nil }
    }
  }

  @Test func `waits grow with failures, and obey the service`() {
    var timing = StoreTiming()
    timing.random = { 1 }
    let waits = (1...9).map { timing.delay(failures: $0, isStreaming: true, retryAfter: nil) }
    #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60, 60])
    #expect(timing.delay(failures: 1, isStreaming: true, retryAfter: 7) == 8)
    timing.random = { 0.5 }
    #expect(timing.delay(failures: 0, isStreaming: true, retryAfter: nil) == 600)
    #expect(timing.delay(failures: 0, isStreaming: false, retryAfter: nil) == 60)
  }
}
