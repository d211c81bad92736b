import Foundation
import Testing

@testable import MusterKit

/// Writes that arrive late, after a newer change from another device, a browser or another host.
@MainActor @Suite struct SupersededTests {
  private let event: Event = {
    var event = ScriptedServer.event(1)
    event.maxPlusOnes = 5
    return event
  }()

  private func run(
    hosting: Bool = false, _ body: @MainActor (TestStore, ScriptedServer) async throws -> Void
  ) async throws {
    try await TestStore.run { test, server in
      var event = event
      if hosting { (event.myRole, event.myStatus) = (.host, "host") }
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test, server)
    }
  }

  /// A change of the event from elsewhere.
  private func change(_ server: ScriptedServer, _ change: (inout Event) -> Void) throws {
    var event = try current(server)
    change(&event)
    try server.set(.events, [event])
  }

  private func current(_ server: ScriptedServer) throws -> Event {
    try #require(server.state.withLock { $0.lists[.events]?.items.first }).json.decode()
  }

  private func writes(_ server: ScriptedServer) -> [ScriptedServer.Received] { server.received(\.isWrite) }

  /// Sends the pending writes. No list proves them yet.
  private func sendWithoutProof(_ test: TestStore, _ server: ScriptedServer) async throws {
    server.fail { $0.isValidation ? .loseRequest : .none }
    _ = await failure { try await test.store.refresh() }
    server.fail { _ in .none }
    #expect(test.store.outbox.pending.map(\.isSent) == [true])
  }

  // MARK: Answers

  @Test func `an answer says what the user saw, and the second of two is based on the first`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id, plusOnes: 2))
      try await sendWithoutProof(test, server)
      try await test.relaunch()
      try await test.store.perform(.answer(.maybe, to: event.id))
      try await test.store.refresh()
      #expect(writes(server).map { $0.body?["ifStatus"]?.string } == ["invited", "going"])
      #expect(writes(server).map { $0.body?["ifPlusOnes"] } == [.integer(0), .integer(2)])
      #expect(test.store.outbox.refusals.isEmpty && test.store.events.items.map(\.myStatus) == [.maybe])
    }
  }

  @Test func `a newer answer stays, the user sees both, and can send the older one again`() async throws {
    try await run { test, server in
      server.takeOffline()
      try await test.store.perform(.answer(.going, to: event.id))
      _ = await failure { try await test.store.refresh() }
      // In the browser.
      try change(server) { $0.myStatus = .declined }
      server.pass(hours: 60)
      server.takeOffline(false)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.myStatus) == [.declined] && test.store.events.isUpToDate)
      let refusal = try #require(test.store.outbox.refusals.first)
      #expect(refusal.write == .answer(.going, to: event.id))
      #expect(refusal.newerState == .answer(.declined, plusOnes: 0) && !refusal.isUnknown)
      try await test.relaunch()
      #expect(test.store.outbox.refusals == [refusal])
      // The user has seen "declined", whatever the lists show by now.
      server.takeOffline()
      try await test.store.sendAgain(refusal)
      try await test.relaunch()
      server.takeOffline(false)
      try await test.store.refresh()
      #expect(writes(server).last?.body?["ifStatus"]?.string == "declined")
      #expect(try current(server).myStatus == .going && test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `an answer whose response was lost is repeated at any age`() async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(.answer(.going, to: event.id))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      server.pass(hours: 24 * 90)
      try await test.relaunch()
      try await test.store.refresh()
      // The store has looked, and it had happened.
      #expect(writes(server).count == 1 && test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(try current(server).myStatus == .going)
    }
  }

  /// Declines, sends "going", and lets 30 hours pass without a response.
  private func loseAnswer(_ test: TestStore, _ server: ScriptedServer, _ fault: ScriptedServer.Fault) async throws {
    try await test.store.perform(.answer(.declined, to: event.id))
    try await test.store.refresh()
    server.pass(hours: 1)
    server.fail { $0.isWrite ? fault : .none }
    try await test.store.perform(.answer(.going, to: event.id))
    try await test.relaunch()
    _ = await failure { try await test.store.refresh() }
    server.fail { _ in .none }
    server.pass(hours: 30)
  }

  @Test func `an answer that was brought back since is not given again`() async throws {
    try await run { test, server in
      try await loseAnswer(test, server, .loseResponse)
      #expect(try current(server).myStatus == .going)
      // In the browser, to the same as before.
      try change(server) { $0.myStatus = .declined }
      server.state.withLock { $0.answeredAt[event.id.wire] = $0.time }
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.map(\.newerState) == [.answer(.declined, plusOnes: 0)])
      #expect(try current(server).myStatus == .declined && writes(server).count == 2)
    }
  }

  @Test func `an answer that never arrived is sent at any age, unless there is another one`() async throws {
    for isAnswered in [false, true] {
      try await run { test, server in
        try await loseAnswer(test, server, .loseRequest)
        if isAnswered {
          try change(server) { $0.myStatus = .maybe }
          server.state.withLock { $0.answeredAt[event.id.wire] = $0.time }
        }
        try await test.relaunch()
        try await test.store.refresh()
        #expect(test.store.outbox.refusals.map(\.newerState) == (isAnswered ? [.answer(.maybe, plusOnes: 0)] : []))
        #expect(try current(server).myStatus == (isAnswered ? .maybe : .going))
        // The list of guests is read as far as the user.
        #expect(server.received { $0.method == "GET" && $0.path.hasSuffix("\(event.id.wire)/invitations") }.count == 1)
      }
    }
  }

  @Test func `an answer does not overwrite a newer place on the waiting list`() async throws {
    try await run { test, server in
      try change(server) { $0.myStatus = .going }
      try await test.store.refresh()
      try await test.store.perform(.answer(.declined, to: event.id))
      try change(server) { $0.myStatus = .waitlisted }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.map(\.newerState) == [.answer(.waitlisted, plusOnes: 0)])
      #expect(try current(server).myStatus == .waitlisted)
    }
  }

  @Test func `the second of two answers is based on what became of the first`() async throws {
    try await run { test, server in
      server.state.withLock { $0.hasRoom = false }
      try await test.store.perform(.answer(.going, to: event.id))
      try await sendWithoutProof(test, server)
      try await test.store.perform(.answer(.maybe, to: event.id))
      try await test.relaunch()
      try await test.store.refresh()
      #expect(writes(server).map { $0.body?["ifStatus"]?.string } == ["invited", "waitlisted"])
      #expect(test.store.outbox.refusals.isEmpty && test.store.events.items.map(\.myStatus) == [.maybe])
    }
  }

  @Test func `of answers that were never sent, only the last one is, based on what the user saw`() async throws {
    for isAnswered in [false, true] {
      try await run { test, server in
        for answer in [Answer.going, .maybe, .declined] {
          try await test.store.perform(.answer(answer, to: event.id))
        }
        // In the browser, the same as the first.
        if isAnswered { try change(server) { $0.myStatus = .going } }
        try await test.relaunch()
        try await test.store.refresh()
        #expect(writes(server).map { $0.body?["status"]?.string } == ["declined"])
        #expect(writes(server).map { $0.body?["ifStatus"]?.string } == ["invited"])
        #expect(test.store.outbox.refusals.map(\.newerState) == (isAnswered ? [.answer(.going, plusOnes: 0)] : []))
        #expect(test.store.outbox.pending.isEmpty && test.store.events.isUpToDate)
        #expect(test.store.events.items.map(\.myStatus) == [isAnswered ? .going : .declined])
      }
    }
  }

  @Test func `the last of several answers brings the plus-ones that were named last`() async throws {
    for isAnswered in [false, true] {
      try await run { test, server in
        for (answer, plusOnes) in [(Answer.going, 2), (.going, 3), (.maybe, nil), (.going, nil)] {
          try await test.store.perform(.answer(answer, to: event.id, plusOnes: plusOnes))
        }
        #expect(test.store.events.items.map(\.myPlusOnes) == [3])
        // In the browser.
        if isAnswered { try change(server) { $0.myStatus = .declined } }
        try await test.relaunch()
        try await test.store.refresh()
        #expect(writes(server).map { $0.body?["status"]?.string } == ["going"])
        #expect(writes(server).map { $0.body?["ifStatus"]?.string } == ["invited"])
        if isAnswered {
          let refusal = try #require(test.store.outbox.refusals.first)
          #expect(refusal.newerState == .answer(.declined, plusOnes: 0))
          try await test.store.sendAgain(refusal)
          try await test.store.refresh()
        }
        let now = try current(server)
        #expect(now.myStatus == .going && now.myPlusOnes == 3)
        #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      }
    }
  }

  @Test func `"no" brings nobody, and the answer after it those whom the user saw`() async throws {
    let cases: [(later: [Answer], brought: JSONValue?)] = [([.declined], nil), ([.declined, .maybe], .integer(2))]
    for (later, brought) in cases {
      try await run { test, server in
        try await test.store.perform(.answer(.going, to: event.id, plusOnes: 2))
        for answer in later { try await test.store.perform(.answer(answer, to: event.id)) }
        try await test.relaunch()
        try await test.store.refresh()
        #expect(writes(server).map { $0.body?["status"]?.string } == [later.last?.rawValue])
        #expect(writes(server).map { $0.body?["plusOnes"] } == [brought])
        #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      }
    }
  }

  @Test func `an answer that was never possible leaves no plus-ones behind`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id, plusOnes: 6))
      #expect(test.store.events.items.map(\.myStatus) == [.invited])
      try await test.store.perform(.answer(.maybe, to: event.id))
      try await test.store.refresh()
      #expect(writes(server).map { $0.body?["status"]?.string } == ["maybe"])
      #expect(writes(server).map { $0.body?["plusOnes"] } == [nil])
      #expect(test.store.events.items.map(\.myPlusOnes) == [0] && test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `after a crash that lost a proof, an answer is based on what the list shows`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.store.refresh()
      // In the browser.
      try change(server) { $0.myStatus = .maybe }
      try await test.store.refresh()
      try FileManager.default.removeItem(at: test.store.folder.file("proofs.json"))
      try await test.relaunch()
      #expect(test.store.events.items.map(\.myStatus) == [.maybe] && test.store.outbox.pending.isEmpty)
      try await test.store.perform(.answer(.declined, to: event.id))
      try await test.store.refresh()
      #expect(writes(server).map { $0.body?["ifStatus"]?.string } == ["invited", "maybe"])
      #expect(test.store.outbox.refusals.isEmpty && test.store.events.items.map(\.myStatus) == [.declined])
    }
  }

  @Test func `an answer that stands already with other plus-ones is no basis for the next one`() async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseRequest : .none }
      try await test.store.perform(.answer(.going, to: event.id))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      try await test.store.perform(.answer(.declined, to: event.id))
      // In the browser.
      try change(server) { ($0.myStatus, $0.myPlusOnes) = (.going, 3) }
      try await test.relaunch()
      try await test.store.refresh()
      #expect(writes(server).map { $0.body?["status"]?.string } == ["going", "going", "declined"])
      #expect(test.store.outbox.refusals.map(\.write) == [.answer(.declined, to: event.id)])
      #expect(test.store.outbox.refusals.map(\.newerState) == [.answer(.going, plusOnes: 3)])
      let now = try current(server)
      #expect(now.myStatus == .going && now.myPlusOnes == 3 && test.store.outbox.pending.isEmpty)
    }
  }

  @Test func `a new place on the waiting list's own account asks the user only before "maybe"`() async throws {
    for (answer, isAsked) in [(Answer.declined, false), (.going, false), (.maybe, true)] {
      try await run { test, server in
        try change(server) { $0.myStatus = .waitlisted }
        try await test.store.refresh()
        try await test.store.perform(.answer(answer, to: event.id))
        try change(server) { $0.myStatus = .going }
        try await test.store.refresh()
        #expect(test.store.outbox.refusals.map(\.newerState) == (isAsked ? [.answer(.going, plusOnes: 0)] : []))
        #expect(try current(server).myStatus.rawValue == (isAsked ? "going" : answer.rawValue))
      }
    }
  }

  // MARK: Edits

  @Test func `an edit of other members is sent again on the newer event, without a question`() async throws {
    try await run(hosting: true) { test, server in
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz", note: .clear)))
      try change(server) { ($0.capacity, $0.version) = (4, 7) }
      try await test.store.refresh()
      #expect(writes(server).map(\.ifMatch) == ["\"1\"", "\"7\""])
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      let now = try current(server)
      #expect(now.title == "Quiz" && now.capacity == 4 && now.version == 8)
    }
  }

  @Test func `a second edit knows what the service has made of the first, and asks for nothing again`() async throws {
    try await run(hosting: true) { test, server in
      server.takeOffline()
      for title in ["Quiz ", "Quiz night"] {
        try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: title)))
        try await test.store.perform(.editProfile(ProfileEdit(displayName: title)))
      }
      _ = await failure { try await test.store.refresh() }
      try await test.relaunch()
      server.takeOffline(false)
      // The stamp of the profile moves.
      var user = try #require(test.store.profile.value)
      (user.displayName, user.emailVerified) = (ScriptedServer.ana.displayName, true)
      try server.set(.profile, [user])
      server.state.withLock { $0.received = [] }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(try current(server).title == "Quiz night" && test.store.profile.value?.displayName == "Quiz night")
      let edits = server.received { $0.path.hasPrefix("/events/") }
      #expect(edits.map(\.method) == ["PATCH", "PATCH"] && edits.map(\.ifMatch) == ["\"1\"", "\"2\""])
    }
  }

  @Test func `an edit that waits longer than the proof of the first still knows of it`() async throws {
    try await run(hosting: true) { test, server in
      server.fail { [server] request in
        let isSecond = request.isWrite && server.received(\.isWrite).count == 2
        return isSecond ? .status(503, .busy) : .none
      }
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz ")))
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz night")))
      _ = await failure { try await test.store.refresh() }
      #expect(test.store.events.items.map(\.title) == ["Quiz night"] && test.store.outbox.pending.count == 2)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(try current(server).title == "Quiz night" && writes(server).map(\.ifMatch).last == "\"2\"")
    }
  }

  @Test func `an edit after a refused one is based on what the user saw before both`() async throws {
    try await run(hosting: true) { test, server in
      server.fail { $0.body?["title"]?.string == "Bad" ? .status(422, .invalidFields) : .none }
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Bad")))
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Good")))
      try change(server) { ($0.capacity, $0.version) = (4, 7) }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.map(\.newerState) == [nil])
      #expect(try current(server).title == "Good")

      // A newer value that the pending edits hide is not overwritten by the second.
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Bad")))
      try change(server) { ($0.title, $0.version) = ("Theirs", 9) }
      server.fail { $0.isWrite ? .status(503, .busy) : .none }
      _ = await failure { try await test.store.refresh() }
      #expect(test.store.events.items.map(\.title) == ["Bad"])
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Better")))
      server.fail { $0.body?["title"]?.string == "Bad" ? .status(422, .invalidFields) : .none }
      try await test.store.refresh()
      #expect(try current(server).title == "Theirs")
      #expect(test.store.outbox.refusals.count == 3)
    }
  }

  @Test func `an edit does not take over what others changed between it and the first`() async throws {
    try await run(hosting: true) { test, server in
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Mine")))
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Mine 2", capacity: .set(3))))
      try change(server) { ($0.capacity, $0.version) = (4, 7) }
      try await test.store.refresh()
      let now = try current(server)
      #expect(now.title == "Mine" && now.capacity == 4)
      #expect(test.store.outbox.refusals.map(\.newerState) == [.event(now)])
    }
  }

  @Test func `an edit of the same member is refused with the newer event, and can be sent again`() async throws {
    try await run(hosting: true) { test, server in
      let mine = Write.editEvent(event.id, applying: EventEdit(title: "Mine"))
      try await test.store.perform(mine)
      try change(server) { ($0.title, $0.version) = ("Theirs", 7) }
      try await test.store.refresh()
      let refusal = try #require(test.store.outbox.refusals.first)
      let theirs = try current(server)
      #expect(refusal.write == mine && refusal.newerState == .event(theirs))
      #expect(test.store.events.items.map(\.title) == ["Theirs"])
      try await test.store.sendAgain(refusal)
      try await test.store.refresh()
      #expect(try current(server).title == "Mine" && test.store.outbox.refusals.isEmpty)
      #expect(writes(server).last?.ifMatch == "\"7\"")
    }
  }

  @Test func `an edit with a version of the app's own is refused as before`() async throws {
    try await run(hosting: true) { test, server in
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Mine"), ifVersion: 1))
      try change(server) { ($0.capacity, $0.version) = (4, 7) }
      try await test.store.refresh()
      guard case .refused(let problem)? = test.store.outbox.refusals.first?.reason else {
        Issue.record("\(test.store.outbox.refusals)")
        return
      }
      #expect(problem.type == .lostUpdate && writes(server).count == 1)
    }
  }

  @Test func `several edits in a row all happen, and a late one does not undo a newer one`() async throws {
    try await run(hosting: true) { test, server in
      for number in 1...3 {
        try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "\(number)")))
        try await test.store.perform(.editProfile(ProfileEdit(bio: .set("\(number)"))))
        try await test.store.perform(.setPreferences(NotificationPreferences([.eventInvited: number == 2])))
      }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      let edited = try current(server)
      #expect(edited.title == "3" && test.store.profile.value?.bio == "3")
      #expect(test.store.notificationPreferences.value?[.eventInvited] == false)

      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "Mine")))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      // It had happened, and another host has brought the old title back.
      try change(server) { ($0.title, $0.version) = ("3", 9) }
      server.pass(hours: 30)
      try await test.relaunch()
      try await test.store.refresh()
      let newer = try current(server)
      #expect(newer.title == "3" && test.store.outbox.refusals.map(\.newerState) == [.event(newer)])
    }
  }

  @Test func `the profile and the preferences ask only about what others have changed`() async throws {
    try await run { test, server in
      server.takeOffline()
      try await test.store.perform(.editProfile(ProfileEdit(bio: .set("Mine"))))
      try await test.store.perform(.setPreferences(NotificationPreferences([.eventUpdated: false])))
      try await test.store.perform(.setPreferences(NotificationPreferences([.eventInvited: false])))
      _ = await failure { try await test.store.refresh() }
      var user = try #require(test.store.profile.value)
      (user.bio, user.emailVerified) = ("Theirs", true)
      try server.set(.profile, [user])
      try server.set(
        .notificationPreferences, [NotificationPreferences([.eventUpdated: true, .friendAccepted: false])])
      server.takeOffline(false)
      try await test.store.refresh()
      #expect(test.store.profile.value?.bio == "Theirs")
      let preferences = try #require(test.store.notificationPreferences.value)
      #expect(preferences.choices == [.eventUpdated: false, .eventInvited: false, .friendAccepted: false])
      let refusals = test.store.outbox.refusals
      guard refusals.count == 1, case .profile(let newer)? = refusals.first?.newerState else {
        Issue.record("\(refusals)")
        return
      }
      #expect(newer.bio == "Theirs" && refusals[0].write == .editProfile(ProfileEdit(bio: .set("Mine"))))
      try await test.store.sendAgain(refusals[0])
      try await test.store.refresh()
      #expect(test.store.profile.value?.bio == "Mine" && test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `an edit after another one is repeated in the same words, and undoes nothing newer`() async throws {
    try await run { test, server in
      func set(_ choices: [NotificationType: Bool]) throws {
        try server.set(.notificationPreferences, [NotificationPreferences(choices)])
      }
      try set([.eventUpdated: true, .eventInvited: true])
      try await test.store.refresh()
      server.takeOffline()
      for type in [NotificationType.eventUpdated, .eventInvited] {
        try await test.store.perform(.setPreferences(NotificationPreferences([type: false])))
      }
      server.takeOffline(false)
      // After the first edit, the tablet sets another choice, so the second is sent again on the newer state.
      let choices = [NotificationType.eventUpdated: false, .eventInvited: true, .friendAccepted: false]
      server.state.withLock { state in
        state.after = { [server] request in
          guard request.isWrite, server.received(\.isWrite).count == 1 else { return }
          try? server.set(.notificationPreferences, [NotificationPreferences(choices)])
        }
      }
      server.fail { [server] _ in server.received(\.isWrite).count == 3 ? .loseResponse : .none }
      _ = await failure { try await test.store.refresh() }
      #expect(writes(server).count == 3 && test.store.outbox.pending.count == 2)
      server.fail { _ in .none }
      server.pass(hours: 1)
      // It had happened, and the tablet has set this one back.
      try set(choices)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      #expect(test.store.notificationPreferences.value?.choices == choices)
      let sent = writes(server)
      #expect(sent.count == 4 && sent.last == sent.dropLast().last)
    }
  }
}
