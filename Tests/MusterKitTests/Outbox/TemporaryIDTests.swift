import Foundation
import Testing

@testable import MusterKit

/// Writes about events that are not sent yet.
@MainActor @Suite struct TemporaryIDTests {
  private let draft = EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon)

  @Test func `later writes get the real id of a new event`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, temporaryID: id))
      try await test.store.perform(.invite([ScriptedServer.ben.id], to: id))
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      #expect(test.store.events.items.map(\.id) == [id] && test.store.outbox.isPending(id))
      try await test.store.refresh()
      let real = try #require(test.store.outbox.realID(of: id))
      #expect(test.store.events.items.map(\.id) == [real] && test.store.events.items.map(\.title) == ["Quiz 2"])
      #expect(server.received(\.isWrite).dropFirst().allSatisfy { $0.path.contains(real.wire) })
      // A screen that still has the temporary id, even after a launch.
      try await test.relaunch()
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 3")))
      #expect(test.store.events.items.map(\.title) == ["Quiz 3"])
      #expect(test.store.outbox.isPending(id) && test.store.outbox.isPending(real))
      try await test.store.refresh()
      #expect(server.received(\.isWrite).last?.path == "/events/\(real.wire)")
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `while the event has its real id and is not validated, it stands once in the list`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, temporaryID: id))
      server.fail { $0.isValidation ? .loseRequest : .none }
      _ = await failure { try await test.store.refresh() }
      let real = try #require(test.store.outbox.realID(of: id))
      #expect(test.store.events.items.map(\.id) == [real])
      // Another validation brings the event while its write is not settled.
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.id) == [real])
    }
  }

  @Test func `if an event is refused, writes about it are also refused`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      server.fail { $0.method == "POST" && $0.path == "/events" ? .status(422, .invalidFields) : .none }
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, temporaryID: id))
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      try await test.store.perform(.invite([ScriptedServer.ben.id], to: id))
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1)
      #expect(test.store.events.items.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(test.store.outbox.refusals.dropFirst().map(\.reason) == [.withoutSubject, .withoutSubject])
    }
  }

  @Test func `an event that is sent again after a refusal takes writes, even if the app ends before that`()
    async throws
  {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      server.fail { $0.isWrite ? .status(422, .invalidFields) : .none }
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, temporaryID: id))
      try await test.store.refresh()
      server.fail { _ in .none }
      try await test.store.sendAgain(try #require(test.store.outbox.refusals.first))
      try await test.relaunch()
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Quiz 2"])
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `a request that is not sent yet can be cancelled`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = FriendRequest.ID()
      try await test.store.perform(.sendRequest(to: ScriptedServer.ben, temporaryID: id))
      #expect(test.store.sentFriendRequests.items.map(\.id) == [id])
      try await test.store.perform(.cancelRequest(id))
      #expect(test.store.sentFriendRequests.items.isEmpty)
      try await test.store.refresh()
      let real = try #require(test.store.outbox.realID(of: id))
      #expect(server.received(\.isWrite).map(\.path) == ["/friend-requests", "/friend-requests/\(real.wire)"])
    }
  }

  @Test func `real ids are forgotten after two days`() async throws {
    try await TestStore.run { test, _ in
      try await test.store.refresh()
      try await test.store.perform(.createEvent(draft))
      try await test.store.refresh()
      #expect(test.files.contains { $0.path.contains("outbox") })
      test.ahead.withLock { $0 = 49 * 3600 }
      try await test.store.refresh()
      #expect(!test.files.contains { $0.path.contains("outbox") })
    }
  }
}
