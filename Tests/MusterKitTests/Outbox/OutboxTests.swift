import Foundation
import Testing

@testable import MusterKit

/// Writes on their way: pending, sent, refused.
@MainActor @Suite struct OutboxTests {
  private let event = ScriptedServer.event(1)
  private let draft = EventDraft(
    title: "Quiz", startTime: ScriptedServer.noon.addingTimeInterval(99_999), timeZone: .lisbon)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test, server)
    }
  }

  @Test func `a write shows at once, and outlives the app`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id))
      #expect(test.store.events.items.map(\.myStatus) == [.going])
      #expect(test.store.outbox.isPending(event.id) && !test.store.outbox.isPending(Event.ID()))
      try await test.relaunch()
      #expect(test.store.events.items.map(\.myStatus) == [.going])
      #expect(test.store.outbox.pending.map(\.write) == [.answer(.going, to: event.id)])
      #expect(server.received(\.isWrite).isEmpty)
    }
  }

  @Test func `writes are sent in order, each with its key, and then validated`() async throws {
    try await run { test, server in
      for number in 1...5 {
        let draft = EventDraft(title: "\(number)", startTime: ScriptedServer.noon, timeZone: .lisbon)
        try await test.store.perform(.createEvent(draft))
      }
      try await test.store.refresh()
      let writes = server.received(\.isWrite)
      #expect(writes.map { $0.body?["title"]?.string } == ["1", "2", "3", "4", "5"])
      #expect(Set(writes.map(\.key)).count == 5 && !writes.contains { $0.key == nil })
      #expect(test.store.outbox.pending.isEmpty)
      #expect(Set(test.store.events.items.map(\.title)) == ["1", "2", "3", "4", "5", event.title])
      #expect(test.store.events.isUpToDate)
    }
  }

  @Test func `writes that are made at the same moment keep their order`() async throws {
    try await run { test, _ in
      let store = test.store
      for round in 1...20 {
        var shown: [Write] = []
        let performed = (1...20).map { number in
          Task {
            let write = Write.editEvent(event.id, applying: EventEdit(title: "\(round).\(number)"))
            shown.append(write)
            try await store.perform(write)
          }
        }
        for task in performed { _ = try await task.value }
        #expect(store.outbox.pending.suffix(20).map(\.write) == shown)
      }
    }
  }

  @Test func `offline, writes wait in order, and a lost response does not repeat the effect`() async throws {
    try await run { test, server in
      server.takeOffline()
      try await test.store.perform(.createEvent(draft))
      _ = await failure { try await test.store.refresh() }
      #expect(test.store.isOffline && test.store.events.items.map(\.title) == ["Event 1", "Quiz"])
      server.takeOffline(false)
      server.fail { $0.isWrite ? .loseResponse : .none }
      for _ in 0..<3 { _ = await failure { try await test.store.refresh() } }
      server.fail { _ in .none }
      try await test.store.refresh()
      let writes = server.received(\.isWrite)
      #expect(writes.count > 3 && Set(writes.map(\.key)).count == 1)
      #expect(test.store.events.items.map(\.title) == ["Event 1", "Quiz"])
    }
  }

  @Test func `a refused write is undone, and its reason stays until it is dismissed`() async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .status(409, .eventCancelled) : .none }
      let writes: [Write] = [
        .answer(.going, to: event.id, plusOnes: 0), .editProfile(ProfileEdit(displayName: "Ana D.")),
      ]
      for write in writes { try await test.store.perform(write) }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.myStatus) == [.invited] && test.store.events.isUpToDate)
      #expect(test.store.profile.value?.displayName == "Ana")
      #expect(test.store.outbox.pending.isEmpty)
      try await test.relaunch()
      let refusals = test.store.outbox.refusals
      #expect(refusals.map(\.write) == writes)
      guard case .refused(let problem) = refusals.first?.reason else {
        Issue.record("\(refusals)")
        return
      }
      #expect(problem.type == .eventCancelled)
      for refusal in refusals { try await test.store.outbox.dismiss(refusal) }
      #expect(test.store.outbox.refusals.isEmpty)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test(arguments: [503, 429, 409, 500]) func `a busy service keeps writes waiting, and lists are still read`(
    status: Int
  ) async throws {
    try await run { test, server in
      let slug: Problem.Slug =
        switch status {
        case 429: .rateLimited
        case 409: .requestRunning
        default: "database-unavailable"
        }
      server.fail { $0.isWrite ? .status(status, slug) : .none }
      try server.set(.friends, [Friend(user: ScriptedServer.ben, since: ScriptedServer.noon)])
      try await test.store.perform(.answer(.going, to: event.id))
      #expect(await failure { try await test.store.refresh() }?.problem?.status == status)
      #expect(test.store.outbox.pending.count == 1 && test.store.outbox.refusals.isEmpty)
      #expect(test.store.friends.items.count == 1 && test.store.friends.isUpToDate)
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.events.items.map(\.myStatus) == [.going])
    }
  }

  @Test func `a limit that may last for days does not hold up the line`() async throws {
    try await run { test, server in
      server.fail {
        $0.path == "/friend-requests" ? .status(429, "too-many-friend-requests", retryAfter: 86_400) : .none
      }
      try await test.store.perform(.sendRequest(to: ScriptedServer.ben))
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.count == 1 && test.store.events.items.map(\.myStatus) == [.going])
    }
  }

  @Test func `a write that always fails is refused in the end, and others follow`() async throws {
    try await run { test, server in
      server.fail { $0.method == "PATCH" ? .status(500, "internal-error") : .none }
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Broken")))
      try await test.store.perform(.answer(.going, to: event.id))
      for _ in 0..<5 { _ = await failure { try await test.store.refresh() } }
      #expect(test.store.outbox.refusals.map(\.write) == [.editEvent(event.id, applying: EventEdit(title: "Broken"))])
      #expect(test.store.events.items.map(\.myStatus) == [.going])
    }
  }

  private nonisolated static let kinds: [Write] = [
    .answer(.going, to: ScriptedServer.event(1).id), .block(ScriptedServer.ben),
  ]

  @Test(arguments: kinds, [0.0, 0.2, -0.2, 24.0, -24.0, 72.0, 9600.0, -9600.0])
  func `a write that never left the phone is sent at any age, whatever the phone's clock says`(
    write: Write, hours: Double
  ) async throws {
    try await run { test, server in
      server.takeOffline()
      try await test.store.perform(write)
      _ = await failure { try await test.store.refresh() }
      server.takeOffline(false)
      // The connection is refused, or there is no address.
      server.fail { $0.isWrite ? .keep : .none }
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      test.ahead.withLock { $0 = hours * 3600 }
      server.pass(hours: 72)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(Set(server.received(\.isWrite).map(\.key)).count == 1)
      #expect(server.state.withLock { $0.responses.count } == 1)
    }
  }

  @Test func `a write that cannot be saved is not kept, and not shown`() async throws {
    try await run { test, server in
      let folder = test.store.folder.file("outbox")
      try FileManager.default.removeItem(at: folder)
      try Data().write(to: folder)
      await #expect(throws: StoreError.self) { try await test.store.perform(.answer(.going, to: event.id)) }
      #expect(test.store.events.items.map(\.myStatus) == [.invited] && test.store.outbox.pending.isEmpty)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).isEmpty)
    }
  }

  @Test func `"mark all" covers what the list showed`() async throws {
    try await run { test, server in
      let item = InboxItem(id: ScriptedServer.id(60), createdAt: .now, type: .eventInvited, message: "Come!")
      try server.set(.notifications, [item])
      try await test.store.refresh()
      let stamp = try #require(server.state.withLock { $0.lists[.notifications]?.stamp })
      try await test.store.perform(.markAllRead())
      #expect(test.store.notifications.items.first?.readAt != nil)
      #expect(test.store.outbox.pending.map(\.write) == [.markAllRead(before: stamp, shown: [item.id])])
      try await test.store.refresh()
      #expect(server.received(\.isWrite).last?.body?["before"]?.string == stamp.rawValue)
    }
  }

  @Test func `passwords and tokens are never written to the disk`() async throws {
    try await run { test, _ in
      let edit = ProfileEdit(email: "ana@muster.test", reauthentication: .password("secret"))
      await #expect(throws: StoreError.needsReauthentication) { try await test.store.perform(.editProfile(edit)) }
      #expect(test.store.outbox.pending.isEmpty)
    }
  }

  @Test func `logging out leaves nothing on the disk, and nothing in the lists`() async throws {
    try await run { test, _ in
      try await test.store.perform(.createEvent(draft))
      try await test.store.forgetEverything()
      #expect(test.store.events.items.isEmpty && !test.store.events.isLoaded && test.store.profile.value == nil)
      #expect(test.store.outbox.pending.isEmpty && test.files.isEmpty)
      await #expect(throws: StoreError.forgotten) { try await test.store.perform(.createEvent(draft)) }
      #expect(await failure { try await test.store.refresh() } == .loggedOut)
      #expect(test.files.isEmpty)
    }
  }

  @Test func `another user never sees or sends what the earlier one left, and does not delete it`() async throws {
    try await run { test, server in
      try await test.store.perform(.createEvent(draft))
      try await test.logIn(ScriptedServer.ben)
      #expect(await failure { try await test.store.refresh() } == .loggedOut)
      try await test.relaunch()
      #expect(!test.store.events.isLoaded && test.store.events.items.isEmpty && test.store.outbox.pending.isEmpty)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).isEmpty)
      #expect(try MusterStore.usersWithUnsentWrites(in: test.folder) == [ScriptedServer.ana.id])

      try await test.logIn(ScriptedServer.ana)
      try await test.relaunch()
      #expect(test.store.outbox.pending.count == 1)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1 && test.store.outbox.pending.isEmpty)
    }
  }

  @Test func `a store that was never started sends with the next refresh`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id))
      for _ in 0..<20 { await Task.yield() }
      #expect(server.received(\.isWrite).isEmpty && !test.store.life.isRunning)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1 && test.store.outbox.pending.isEmpty)
    }
  }
}
