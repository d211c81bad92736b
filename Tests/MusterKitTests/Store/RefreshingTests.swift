import Foundation
import Testing

@testable import MusterKit

/// Launches and refreshes of a store.
@MainActor @Suite struct RefreshingTests {
  @Test func `the first refresh loads all lists with one request`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1), ScriptedServer.event(2)])
      #expect(!test.store.events.isLoaded && !test.store.events.isUpToDate)
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Event 1", "Event 2"])
      #expect(test.store.profile.value?.displayName == "Ana")
      #expect(test.store.notificationPreferences.value?[.eventUpdated] == true)
      #expect(test.store.friends.isLoaded && test.store.friends.items.isEmpty)
      #expect(server.received().count == 1)
    }
  }

  @Test func `a launch shows the copies without a request, and claims nothing`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      try await test.store.refresh()
      let asOf = try #require(test.store.events.upToDateAsOf)
      try await test.relaunch()
      #expect(test.store.events.items.map(\.title) == ["Event 1"] && test.store.events.isLoaded)
      #expect(!test.store.events.isUpToDate)
      let kept = try #require(test.store.events.upToDateAsOf)
      #expect(abs(kept.timeIntervalSince(asOf)) < 0.001)
      #expect(server.received().count == 1)
    }
  }

  @Test func `a launch after a change asks with stamps and digests, and gets the change alone`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, (1...3).map { ScriptedServer.event($0) })
      try await test.store.refresh()
      try server.set(.events, [ScriptedServer.event(3), ScriptedServer.event(1, title: "Changed")])
      server.state.withLock { $0.changedLimit = 1 }
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Event 3", "Changed"])
      #expect(test.store.events.isUpToDate)
      let claim = try #require(server.received().last?.body?["events"])
      #expect(claim["timestamp"] != .null)
      #expect(ScriptedServer.digests(try #require(claim["held"]?.string)).count == 3)
      // Each copy is stored with its stamp: the next launch has nothing to read.
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Event 3", "Changed"] && test.store.events.isUpToDate)
      #expect(server.received().count == 3)
    }
  }

  @Test func `a fresh copy is proved again, and the proof outlives the app`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      try await test.store.refresh()
      test.ahead.withLock { $0 = 3600 }
      try await test.store.refresh()
      let asOf = try #require(test.store.events.upToDateAsOf)
      #expect(asOf > Date().addingTimeInterval(3000))
      try await test.relaunch()
      #expect(abs((test.store.events.upToDateAsOf ?? .distantPast).timeIntervalSince(asOf)) < 0.001)
      #expect(server.received().count == 2)
    }
  }

  @Test func `without a network, a refresh says so, and the copies stay`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      try await test.store.refresh()
      try await test.relaunch()
      server.takeOffline()
      guard case .unreachable = await failure(of: { try await test.store.refresh() }) else {
        Issue.record("no error")
        return
      }
      #expect(test.store.isOffline && !test.store.events.isUpToDate)
      #expect(test.store.events.items.map(\.title) == ["Event 1"] && test.store.events.upToDateAsOf != nil)
      server.takeOffline(false)
      try await test.store.refresh()
      #expect(!test.store.isOffline && test.store.events.isUpToDate)
    }
  }

  @Test func `concurrent refreshes share requests that begin after them`() async throws {
    try await TestStore.run { test, server in
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { _ = await failure { try await test.store.refresh() } } }
      }
      #expect((1...2).contains(server.received().count))
    }
  }

  @Test func `a refresh during a validation waits for one that began after it`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      let second = Guarded<Task<Void, any Error>?>(nil)
      // After the first response is made, the list changes, and the user pulls to refresh.
      server.state.withLock { state in
        state.after = { [weak test] _ in
          guard second.withLock({ $0 == nil }) else { return }
          try? server.set(.events, [ScriptedServer.event(2)])
          second.withLock { task in task = Task { @MainActor in try await test?.store.refresh() } }
        }
      }
      try await test.store.refresh()
      try await second.withLock { $0 }?.value
      #expect(test.store.events.items.map(\.title) == ["Event 2"])
    }
  }

  @Test func `damaged files are read again from the service`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      try await test.store.refresh()
      for file in test.files where file.pathExtension != "" {
        var data = try Data(contentsOf: file)
        data[data.count / 2] ^= 1
        try data.write(to: file)
      }
      try await test.relaunch()
      #expect(!test.store.events.isLoaded && test.store.events.items.isEmpty)
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Event 1"] && test.store.events.isUpToDate)
    }
  }

  @Test func `lists are complete when responses leave items out`() async throws {
    try await TestStore.run { test, server in
      let events = (1...20).map { ScriptedServer.event($0) }
      let people = (1...20).map { Person(id: ScriptedServer.id(100 + $0), username: "\($0)", displayName: "\($0)") }
      try server.set(.events, events)
      try server.set(.invitations, events.map { Invitation(event: $0, status: .invited, invitedAt: .now) })
      try server.set(.friends, people.map { Friend(user: $0, since: ScriptedServer.noon) })
      try server.set(.blocks, people.map { Block(user: $0, since: ScriptedServer.noon) })
      server.state.withLock { $0.changedLimit = 3 }
      try await test.store.refresh()
      #expect(test.store.events.items == events && test.store.invitations.items.count == 20)
      #expect(test.store.friends.items.map(\.user) == people && test.store.blocks.items.map(\.user) == people)
      #expect(test.store.events.isUpToDate && test.store.friends.isUpToDate)
    }
  }

  @Test func `when the service does not understand a claim, the lists come without digests`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1), ScriptedServer.event(2)])
      try await test.store.refresh()
      try server.set(.events, [ScriptedServer.event(2)])
      server.fail { request in
        request.body?["events"]?["held"]?.string?.isEmpty == false ? .status(422, .invalidFields) : .none
      }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Event 2"] && test.store.events.isUpToDate)
      #expect(server.received().count == 3)
      // A refusal that the digests do not explain is an error.
      server.fail { $0.isValidation ? .status(422, .invalidFields) : .none }
      guard case .refused(let problem) = await failure(of: { try await test.store.refresh() }) else {
        Issue.record("no error")
        return
      }
      #expect(problem.type == .invalidFields)
    }
  }

  @Test func `lists that are longer than a verdict are read to their end`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, (1...250).map { ScriptedServer.event($0) })
      server.state.withLock { $0.partsLimit = 20 }
      try await test.store.refresh()
      #expect(test.store.events.items.count == 250 && test.store.events.isUpToDate && !test.store.events.hasMore)
      #expect(server.received().count == 13)
      // The beginning of each claim is what the one before has left.
      #expect(server.received { $0.body?["events"]?["cursor"]?.string != nil }.count == 12)
    }
  }

  @Test func `with more than 500 digests, the stamps are sent first, and the digests of stale lists alone`()
    async throws
  {
    try await TestStore.run { test, server in
      let people = (1...450).map { Person(id: ScriptedServer.id(100 + $0), username: "\($0)", displayName: "\($0)") }
      try server.set(.friends, people.map { Friend(user: $0, since: ScriptedServer.noon) })
      try server.set(.events, (1...51).map { ScriptedServer.event($0) })
      try await test.store.refresh()
      try await test.store.refresh()
      // The stamps, and then the past events.
      #expect(server.received().dropLast().last?.body?["friends"]?.string != nil)
      #expect(server.received().count == 3)
      try server.set(.events, (2...52).map { ScriptedServer.event($0) })
      try await test.store.refresh()
      let last = server.received().suffix(2)
      #expect(last.first?.query["include"] == nil && last.last?.query["include"] == "changes")
      guard case .object(let claims)? = last.last?.body else { return }
      #expect(Set(claims.keys).subtracting(["pastEvents"]) == Set(["events"]))
      #expect(ScriptedServer.digests(claims["events"]?["held"]?.string ?? "").count == 51)
      #expect(server.received().count == 5 && test.store.events.isUpToDate && test.store.friends.isUpToDate)
      #expect(test.store.events.items.map(\.title) == (2...52).map { "Event \($0)" })
    }
  }

  @Test func `a list that changes between its verdicts is not mixed`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, (1...150).map { ScriptedServer.event($0) })
      let changes = Guarded(0)
      server.state.withLock { state in
        state.partsLimit = 20
        state.before = { request in
          guard request.body?["events"]?["cursor"]?.string != nil,
            changes.withLock({
              $0 += 1; return $0
            }) == 1
          else { return }
          try? server.set(.events, (2...151).map { ScriptedServer.event($0) })
        }
      }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == (2...151).map { "Event \($0)" })
      #expect(test.store.events.isUpToDate)
    }
  }

  @Test func `the inbox is read in parts`() async throws {
    try await TestStore.run { test, server in
      let items = (1...1300).map { number in
        InboxItem(
          id: ScriptedServer.id(10_000 + number), createdAt: ScriptedServer.noon, type: .eventInvited, message: "Come!")
      }
      try server.set(.notifications, items)
      try await test.store.refresh()
      #expect(test.store.notifications.items.count == 500 && test.store.notifications.hasMore)
      #expect(test.store.notifications.isUpToDate)
      try await test.store.loadMore(of: .notifications)
      #expect(test.store.notifications.items.count == 1000)
      try await test.store.loadMore(of: .notifications)
      #expect(test.store.notifications.items == items && !test.store.notifications.hasMore)
    }
  }
}
