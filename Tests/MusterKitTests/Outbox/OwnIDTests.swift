import Foundation
import Testing

@testable import MusterKit

/// Events and requests have their ids from the client, sent or not.
@MainActor @Suite struct OwnIDTests {
  private let draft = EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon)

  @Test func `a new event keeps its id, and later writes name it`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let pending = try await test.store.perform(.createEvent(draft))
      let id = Event.ID(try #require(pending.write.createdID))
      try await test.store.perform(.invite([ScriptedServer.ben.id], to: id))
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      #expect(test.store.events.items.map(\.id) == [id] && test.store.outbox.isPending(id))
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.id) == [id] && test.store.events.items.map(\.title) == ["Quiz 2"])
      #expect(server.received(\.isWrite).dropFirst().allSatisfy { $0.path.contains(id.wire) })
      // A screen that has been open since, even after a launch.
      try await test.relaunch()
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 3")))
      #expect(test.store.events.items.map(\.title) == ["Quiz 3"] && test.store.outbox.isPending(id))
      try await test.store.refresh()
      #expect(server.received(\.isWrite).last?.path == "/events/\(id.wire)")
      #expect(test.store.outbox.refusals.isEmpty && !test.files.contains { $0.path.contains("outbox") })
    }
  }

  /// A draft that was used before, and the ids of the write.
  @Test func `the id of a write counts, whatever the draft's own`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      var used = draft
      used.id = Event.ID()
      for _ in 1...2 { try await test.store.perform(.createEvent(used)) }
      try await test.store.refresh()
      #expect(Set(test.store.events.items.map(\.id)).count == 2)
      #expect(!test.store.events.items.map(\.id).contains(try #require(used.id)))
    }
  }

  @Test func `an id is a UUID of version 7, in the order of time`() {
    let ids = (0..<1000).map { UUID.version7(at: Date(timeIntervalSince1970: Double($0))) }
    #expect(ids.allSatisfy { $0.uuid.6 >> 4 == 7 && $0.uuid.8 >> 6 == 2 })
    #expect(ids.map(\.wire) == ids.map(\.wire).sorted() && Set(ids).count == ids.count)
    for time in [Date.distantPast, .distantFuture, Date(timeIntervalSince1970: 1e18)] {
      #expect(UUID.version7(at: time).uuid.6 >> 4 == 7)
    }
  }

  @Test(arguments: [ScriptedServer.Fault.loseRequest, .loseResponse])
  func `a creation is sent again at any age, and exists once`(_ fault: ScriptedServer.Fault) async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let (event, request) = (Event.ID(), FriendRequest.ID())
      try await test.store.perform(.createEvent(draft, id: event))
      try await test.store.perform(.sendRequest(to: ScriptedServer.ben, id: request))
      try await test.store.perform(.editEvent(event, applying: EventEdit(title: "Quiz 2")))
      for path in ["/events", "/friend-requests"] {
        server.fail { $0.isWrite && $0.path == path ? fault : .none }
        _ = await failure { try await test.store.refresh() }
        // The service has forgotten all keys.
        server.pass(hours: 24 * 90)
        try await test.relaunch()
      }
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(test.store.events.items.map(\.id) == [event] && test.store.events.items.map(\.title) == ["Quiz 2"])
      #expect(test.store.sentFriendRequests.items.map(\.id) == [request])
      #expect(server.received { $0.method == "POST" && $0.path == "/events" }.count == 2)
    }
  }

  @Test func `an edit after a creation that is repeated does not overwrite what a co-host has changed since`()
    async throws
  {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = Event.ID()
      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(.createEvent(draft, id: id))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      var event: Event = try #require(server.state.withLock { $0.lists[.events]?.items.first }).json.decode()
      (event.title, event.version) = ("Theirs", 2)
      try server.set(.events, [event])
      server.pass(hours: 24 * 3)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.map(\.newerState) == [.event(event)] && test.store.outbox.pending.isEmpty)
      #expect(test.store.events.items.map(\.title) == ["Theirs"])
    }
  }

  @Test func `while the event is not validated, it stands once in the list`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, id: id))
      server.fail { $0.isValidation ? .loseRequest : .none }
      _ = await failure { try await test.store.refresh() }
      #expect(test.store.events.items.map(\.id) == [id])
      // Another validation brings the event while its write is not settled.
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.id) == [id])
    }
  }

  @Test func `if an event is refused, writes about it are also refused`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      server.fail { $0.method == "POST" && $0.path == "/events" ? .status(422, .invalidFields) : .none }
      let id = Event.ID()
      try await test.store.perform(.createEvent(draft, id: id))
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
      try await test.store.perform(.createEvent(draft, id: id))
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
      try await test.store.perform(.sendRequest(to: ScriptedServer.ben, id: id))
      #expect(test.store.sentFriendRequests.items.map(\.id) == [id])
      try await test.store.perform(.cancelRequest(id))
      #expect(test.store.sentFriendRequests.items.isEmpty)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).map(\.path) == ["/friend-requests", "/friend-requests/\(id.wire)"])
    }
  }
}
