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

  /// Answers in the app, and then in the extension.
  ///
  /// - Returns: what the user is asked about.
  private func answerInBoth(
    _ app: MusterStore, _ other: MusterStore, _ server: ScriptedServer, isKnown: Bool, isElsewhere: Bool
  ) async throws -> [NewerState?] {
    try await app.perform(.answer(.going, to: event.id))
    if isKnown { _ = await other.outbox.reload() }
    try await app.refresh()
    #expect(app.outbox.pending.isEmpty)
    if isElsewhere { try server.set(.events, [ScriptedServer.event(1, status: .maybe)]) }
    // The other process has not looked since.
    #expect(other.events.items.map(\.myStatus) == [.invited])
    try await other.perform(.answer(.declined, to: event.id))
    try await other.refresh()
    #expect(server.received(\.isWrite).map { $0.body?["ifStatus"]?.string } == ["invited", "going"])
    return other.outbox.refusals.map(\.newerState)
  }

  @Test func `the user's answer in the other process is no newer state, but one from elsewhere is`() async throws {
    for isKnown in [false, true] {
      try await run { app, other, server in
        let asked = try await answerInBoth(app, other, server, isKnown: isKnown, isElsewhere: false)
        #expect(asked.isEmpty)
        #expect(other.events.items.map(\.myStatus) == [.declined])
      }
      try await run { app, other, server in
        let asked = try await answerInBoth(app, other, server, isKnown: isKnown, isElsewhere: true)
        #expect(asked == [.answer(.maybe, plusOnes: 0)])
        #expect(other.events.items.map(\.myStatus) == [.maybe])
        // The list is newer than the answer of the other process.
        try await other.perform(.answer(.going, to: event.id))
        try await other.refresh()
        #expect(server.received(\.isWrite).last?.body?["ifStatus"]?.string == "maybe")
        #expect(other.outbox.refusals.count == 1)
      }
    }
  }

  @Test func `an answer does not replace one that the user gave later, and that was sent first`() async throws {
    try await run { app, other, server in
      try await other.perform(.answer(.going, to: event.id))
      // The app was sending, and has not read the folder since.
      let name = try #require(try app.folder.names(in: OutboxFiles.subfolder).first)
      let (file, aside) = (app.folder.file("\(OutboxFiles.subfolder)/\(name)"), app.folder.file(name))
      try FileManager.default.moveItem(at: file, to: aside)
      try await app.perform(.answer(.declined, to: event.id))
      try await app.refresh()
      #expect(app.outbox.pending.isEmpty && app.events.items.map(\.myStatus) == [.declined])
      try FileManager.default.moveItem(at: aside, to: file)
      try await app.refresh()
      #expect(server.received(\.isWrite).map { $0.body?["ifStatus"]?.string } == ["invited", "invited"])
      #expect(app.outbox.refusals.map(\.newerState) == [.answer(.declined, plusOnes: 0)])
      #expect(app.events.items.map(\.myStatus) == [.declined])
    }
  }

  @Test func `edits in one process follow those that the other one has settled`() async throws {
    try await run { app, other, server in
      var hosted = event
      (hosted.myRole, hosted.myStatus) = (.host, "host")
      try server.set(.events, [hosted])
      for store in [app, other] { try await store.refresh() }
      for (store, text) in [(app, "Quiz"), (other, "Quiz night")] {
        try await store.perform(.editEvent(event.id, applying: EventEdit(title: text)))
        try await store.perform(.editEvent(event.id, applying: EventEdit(note: .set(text))))
        try await store.perform(.editProfile(ProfileEdit(bio: .set(text))))
        try await store.perform(.setPreferences(NotificationPreferences([.eventUpdated: store === other])))
        try await store.refresh()
        #expect(store.outbox.refusals.isEmpty && store.outbox.pending.isEmpty)
      }
      #expect(other.events.items.map(\.title) == ["Quiz night"] && other.events.items.map(\.note) == ["Quiz night"])
      #expect(other.profile.value?.bio == "Quiz night")
      #expect(other.notificationPreferences.value?[.eventUpdated] == true)
    }
  }

  @Test func `the files of settled writes are few`() async throws {
    try await run { app, _, server in
      for number in 1...110 {
        try await app.perform(.setPreferences(NotificationPreferences([.eventUpdated: number % 2 == 0])))
      }
      try await app.refresh()
      #expect(server.received(\.isWrite).count == 110 && app.outbox.pending.isEmpty)
      #expect(try app.folder.names(in: "settled").count == 100)
      #expect(try app.folder.names(in: OutboxFiles.subfolder).isEmpty)
    }
  }

  @Test func `the files of settled writes are dropped after 60 days`() async throws {
    try await run { app, _, _ in
      for answer in [Answer.going, .maybe] {
        try await app.perform(.answer(answer, to: event.id))
        try await app.refresh()
        let names = try app.folder.names(in: "settled")
        #expect(names.count == 1)
        let file = app.folder.file("settled/\(try #require(names.first))")
        try FileManager.default.setAttributes(
          [.modificationDate: Date(timeIntervalSinceNow: -61 * 86_400)], ofItemAtPath: file.path)
      }
    }
  }

  @Test func `a settled write leaves the line, even if its file cannot be put aside`() async throws {
    try await run { app, _, server in
      let folder = app.folder.file("settled")
      for isFile in [false, true] {
        try FileManager.default.removeItem(at: folder)
        if isFile { try Data().write(to: folder) }
        try await app.perform(.answer(isFile ? .maybe : .going, to: event.id))
        try await app.refresh()
        #expect(try app.folder.names(in: OutboxFiles.subfolder).isEmpty)
        #expect(app.outbox.pending.isEmpty && app.events.isUpToDate)
        if !isFile { try app.folder.makeSubfolder("settled") }
      }
      #expect(server.received(\.isWrite).count == 2)
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
