import Foundation
import Testing

@testable import MusterKit

/// Items of a later version of the service, which this version of the app cannot decode.
@MainActor @Suite struct UndecodableItemTests {
  private let strange = JSONValue.object(["id": .string("x"), "shape": .string("of a later release")])

  @Test func `the list shows the others, says which it lacks, and is not up to date`() async throws {
    try await TestStore.run { test, server in
      let good = try JSONValue(encoding: ScriptedServer.event(1))
      try server.set(.events, [good, strange])
      try await test.store.refresh()
      @MainActor func expectIncomplete() {
        #expect(test.store.events.items.map(\.title) == ["Event 1"])
        #expect(test.store.events.isLoaded && !test.store.events.isUpToDate)
        #expect(test.store.events.undecodable?.keys == ["x"])
        #expect(test.store.events.undecodable?.reason.isEmpty == false)
      }
      expectIncomplete()
      #expect(test.store.lastError == nil && test.store.friends.isUpToDate && test.store.friends.undecodable == nil)
      // Proved again, and nothing has changed.
      try await test.store.refresh()
      expectIncomplete()
      server.takeOffline()
      try await test.relaunch()
      expectIncomplete()
      server.takeOffline(false)
      try server.set(.events, [good])
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && test.store.events.undecodable == nil)
    }
  }

  @Test func `an object says why it has no value`() async throws {
    try await TestStore.run { test, server in
      try server.set(.profile, [strange])
      try await test.store.refresh()
      #expect(test.store.profile.value == nil && !test.store.profile.isUpToDate)
      #expect(test.store.profile.undecodable?.keys == ["me"])
      #expect(test.store.events.isUpToDate)
    }
  }

  /// A store that runs does not ask again and again.
  @Test func `a list that cannot be decoded is validated no more often than others`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [strange])
      test.store.start()
      try await test.wait { test.store.friends.isUpToDate }
      for _ in 0..<50 { await Task.yield() }
      let count = server.received(\.isValidation).count
      try await Task.sleep(for: .milliseconds(100))
      #expect(server.received(\.isValidation).count <= count + 1)
    }
  }
}
