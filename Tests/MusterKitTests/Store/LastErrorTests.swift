import Foundation
import Observation
import Testing

@testable import MusterKit

/// The error of a store's last attempt.
@MainActor @Suite struct LastErrorTests {
  private let event = ScriptedServer.event(1)

  @Test func `a failure is kept until a success, and views follow both`() async throws {
    try await TestStore.run { test, server in
      #expect(test.store.lastError == nil)
      let changes = Guarded(0)
      @MainActor func observe() {
        withObservationTracking {
          _ = test.store.lastError
        } onChange: {
          changes.withLock { $0 += 1 }
        }
      }
      observe()
      server.takeOffline()
      _ = await failure { try await test.store.refresh() }
      guard case .unreachable = test.store.lastError as? MusterError else {
        Issue.record("\(String(describing: test.store.lastError))")
        return
      }
      #expect(test.store.isOffline && changes.withLock { $0 } == 1)
      observe()
      server.takeOffline(false)
      try await test.store.refresh()
      #expect(test.store.lastError == nil && !test.store.isOffline && changes.withLock { $0 } == 2)
    }
  }

  @Test func `a write that cannot be sent is a failure, although the lists are read`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      server.fail { $0.isWrite ? .status(503, .busy) : .none }
      try await test.store.perform(.answer(.going, to: event.id))
      _ = await failure { try await test.store.refresh() }
      #expect((test.store.lastError as? MusterError)?.problem?.type == .busy)
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.lastError == nil)
    }
  }

  @Test func `the end of an earlier stream does not undo a later login`() async throws {
    try await TestStore.run { test, server in
      test.store.start()
      let earlier = test.store.life.number
      test.store.stop()
      test.store.start()
      try await test.wait { test.store.events.isUpToDate }
      test.store.endSession(ofLife: earlier)
      #expect(!test.store.isLoggedOut && test.store.life.isRunning && test.store.lastError == nil)
      test.store.endSession(ofLife: test.store.life.number)
      #expect(test.store.isLoggedOut && !test.store.life.isRunning)
      #expect(test.store.lastError as? MusterError == .loggedOut)
      try await test.store.refresh()
      #expect(!test.store.isLoggedOut && test.store.lastError == nil)
    }
  }

  @Test func `a failure that says nothing about the session keeps the login on the screen`() async throws {
    try await TestStore.run { test, server in
      server.fail { _ in .status(401, .sessionEnded) }
      #expect(await failure { try await test.store.refresh() } == .loggedOut)
      #expect(test.store.isLoggedOut)
      // Another user logs in, and the network is lost.
      try await test.logIn(ScriptedServer.ben)
      server.takeOffline()
      _ = await failure { try await test.store.refresh() }
      #expect(test.store.isLoggedOut)
    }
  }

  @Test func `a wait of days, as a broken proxy asks for it, counts for minutes`() {
    var timing = StoreTiming()
    timing.random = { 1 }
    #expect(timing.delay(failures: 1, isStreaming: false, retryAfter: 2_592_000) == 901)
  }
}
