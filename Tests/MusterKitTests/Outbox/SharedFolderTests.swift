import Foundation
import Testing

@testable import MusterKit

/// An app and its extension on one folder.
@MainActor @Suite struct SharedFolderTests {
  private let event = ScriptedServer.event(1)

  private func run(_ body: @MainActor (MusterStore, MusterStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test.store, try await test.another(), server)
    }
  }

  @Test func `what one process writes, the other one shows and sends`() async throws {
    try await run { app, other, server in
      try await other.perform(.answer(.going, to: event.id))
      try await app.refresh()
      #expect(server.received(\.isWrite).count == 1)
      #expect(app.events.items.map(\.myStatus) == [.going] && app.events.isUpToDate)
      // The other one shows it until it has seen the effect itself.
      #expect(other.events.items.map(\.myStatus) == [.going] && !other.events.isUpToDate)
      try await other.refresh()
      #expect(other.outbox.pending.isEmpty && other.events.isUpToDate)
      #expect(other.events.items.map(\.myStatus) == [.going])
      #expect(server.received(\.isWrite).count == 1)
    }
  }

  @Test func `when both send at once, each write is sent once, in order`() async throws {
    try await run { app, other, server in
      for number in 1...10 {
        let draft = EventDraft(title: "\(number)", startTime: ScriptedServer.noon, timeZone: .lisbon)
        try await (number % 2 == 0 ? app : other).perform(.createEvent(draft))
      }
      let passes = [app, other].map { store in Task { try await store.refresh() } }
      for pass in passes { try await pass.value }
      #expect(server.received(\.isWrite).map { $0.body?["title"]?.string } == (1...10).map { "\($0)" })
      for store in [app, other] {
        try await store.refresh()
        #expect(Set(store.events.items.map(\.title)) == Set((1...10).map { "\($0)" } + [event.title]))
        #expect(store.events.isUpToDate && store.outbox.pending.isEmpty)
      }
    }
  }

  @Test func `a refusal in one process reaches the other one, and so does its dismissal`() async throws {
    try await run { app, other, server in
      server.fail { $0.isWrite ? .status(409, .eventCancelled) : .none }
      try await other.perform(.answer(.going, to: event.id))
      try await app.refresh()
      #expect(app.outbox.refusals.count == 1)
      try await other.refresh()
      #expect(other.outbox.refusals == app.outbox.refusals && other.events.items.map(\.myStatus) == [.invited])
      try await app.outbox.dismiss(try #require(app.outbox.refusals.first))
      try await other.refresh()
      #expect(other.outbox.refusals.isEmpty)
    }
  }

  @Test func `a write about an event that the other process sent works`() async throws {
    try await run { app, other, server in
      let id = Event.ID()
      let draft = EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon)
      try await other.perform(.createEvent(draft, id: id))
      try await app.refresh()
      // The other process has not looked since.
      try await other.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      try await other.refresh()
      #expect(other.outbox.refusals.isEmpty && other.events.items.map(\.title).contains("Quiz 2"))
      try await app.refresh()
      #expect(app.events.items.map(\.title).contains("Quiz 2") && app.events.items.count == 2)
    }
  }

  @Test func `an edit follows that of the other process, whichever sends the two`() async throws {
    for isSent in [false, true] {
      try await run { app, other, server in
        var hosted = event
        (hosted.myRole, hosted.myStatus) = (.host, "host")
        try server.set(.events, [hosted])
        for store in [app, other] { try await store.refresh() }
        try await app.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz ")))
        if isSent {
          server.fail { $0.isValidation ? .loseRequest : .none }
          _ = await failure { try await app.refresh() }
          #expect(server.received(\.isWrite).count == 1)
          server.fail { _ in .none }
        }
        // The other process has not looked since.
        try await other.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz night")))
        try await (isSent ? other : app).refresh()
        #expect(server.received(\.isWrite).map(\.ifMatch) == ["\"1\"", "\"2\""])
        for store in [app, other] {
          try await store.refresh()
          #expect(store.outbox.refusals.isEmpty && store.outbox.pending.isEmpty)
          #expect(store.events.items.map(\.title) == ["Quiz night"])
        }
      }
    }
  }

  @Test func `a write that is made while the files are read stands once in the outbox`() async throws {
    try await run { app, _, server in
      for number in 1...20 {
        let reading = Task { await app.outbox.reload() }
        await Task.yield()
        try await app.perform(.editEvent(event.id, applying: EventEdit(title: "\(number)")))
        _ = await reading.value
        #expect(app.outbox.pending.count == number)
      }
      try await app.refresh()
      #expect(server.received(\.isWrite).count == 20 && app.outbox.pending.isEmpty)
    }
  }
}
