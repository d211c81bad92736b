import Foundation
import MusterKit
import TestSupport
import Testing

/// A store without a network.
@MainActor @Suite struct OfflineTests {
  @Test func `a start without a network shows the copies, and says how old they are`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    #expect(!phone.store.events.isLoaded && !phone.store.events.isUpToDate && phone.store.events.upToDateAsOf == nil)
    let begin = Date.now
    try await phone.store.refresh()
    #expect(phone.store.events.items.map(\.title) == ["Picnic"])
    #expect(phone.store.events.isUpToDate && !phone.store.isOffline)
    let proved = try #require(phone.store.events.upToDateAsOf)
    #expect(proved >= begin.addingTimeInterval(-0.001) && proved <= .now)

    phone.proxy.isOffline = true
    try phone.relaunch()
    try await eventually { phone.store.events.isLoaded }
    #expect(phone.store.events.items.map(\.title) == ["Picnic"])
    #expect(phone.store.friends.items.map(\.user.displayName) == ["ben"])
    #expect(phone.store.profile.value?.displayName == "ana")
    #expect(!phone.store.events.isUpToDate)
    let kept = try #require(phone.store.events.upToDateAsOf)
    #expect(abs(kept.timeIntervalSince(proved)) < 0.001)
    await expectUnreachable { try await phone.store.refresh() }
    #expect(phone.store.isOffline)
    #expect(phone.store.events.items.map(\.title) == ["Picnic"])
    await phone.end()
  }

  @Test func `writes without a network are shown immediately, outlive the app, and are sent in order`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    try await phone.store.refresh()
    phone.proxy.isOffline = true
    phone.store.start()
    let own = Event.ID()
    try await phone.store.perform(.answer(.going, to: event.id))
    try await phone.store.perform(.createEvent(.planned("Quiz", inviting: [ben]), id: own))
    for title in ["Quiz 1", "Quiz 2", "Quiz 3"] {
      try await phone.store.perform(.editEvent(own, applying: EventEdit(title: title)))
    }
    try await phone.store.perform(.editProfile(ProfileEdit(displayName: "Anita")))
    func expectShown() {
      #expect(Set(phone.store.events.items.map(\.title)) == ["Picnic", "Quiz 3"])
      #expect(phone.store.events.items.first { $0.title == "Picnic" }?.myStatus == .going)
      #expect(phone.store.profile.value?.displayName == "Anita")
      #expect(phone.store.events.hasPendingWrites && !phone.store.events.isUpToDate)
      #expect(phone.store.outbox.pending.count == 6)
    }
    expectShown()
    try phone.relaunch()
    try await eventually { phone.store.events.isLoaded }
    expectShown()
    phone.store.start()
    await expectUnreachable { try await phone.store.refresh() }
    expectShown()
    #expect(try await ben.client.events.list().items.map(\.title) == ["Picnic"])

    phone.proxy.isOffline = false
    try await eventually(within: .seconds(20)) {
      phone.store.outbox.pending.isEmpty && phone.store.events.isUpToDate && phone.store.profile.isUpToDate
    }
    #expect(phone.store.outbox.refusals.isEmpty)
    let sent = try await ben.client.events.list().items
    #expect(Set(sent.map(\.title)) == ["Picnic", "Quiz 3"])
    let quiz = try #require(sent.first { $0.title == "Quiz 3" })
    #expect(quiz.version == 4 && quiz.creator?.displayName == "Anita")
    #expect(quiz.id == own && phone.store.events.items.contains { $0.id == own })
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `a refused write is undone, and the server's reason is kept`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let picnic = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let quiz = try await ben.client.events.create(.planned("Quiz", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    try await phone.store.refresh()
    phone.proxy.isOffline = true
    try await phone.store.perform(.answer(.going, to: picnic.id))
    try await phone.store.perform(.answer(.maybe, to: quiz.id))
    #expect(phone.store.events.items.map(\.myStatus) == [.going, .maybe])
    try await ben.client.events.cancel(picnic.id)
    phone.proxy.isOffline = false
    try await phone.catchUp()
    let refusal = try #require(phone.store.outbox.refusals.first)
    #expect(phone.store.outbox.refusals.count == 1 && phone.store.outbox.pending.isEmpty)
    #expect(refusal.write == .answer(.going, to: picnic.id))
    guard case .refused(let problem) = refusal.reason else {
      Issue.record("\(refusal.reason)")
      return
    }
    #expect(problem.type == .eventCancelled)
    #expect(phone.store.events.items.first { $0.id == picnic.id }?.myStatus == .invited)
    #expect(phone.store.events.items.first { $0.id == quiz.id }?.myStatus == .maybe)
    // It outlives the app, until it is dismissed.
    try phone.relaunch()
    try await eventually { !phone.store.outbox.refusals.isEmpty }
    try await phone.store.outbox.dismiss(refusal)
    try phone.relaunch()
    try await phone.catchUp()
    #expect(phone.store.outbox.refusals.isEmpty)
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `every write of the outbox happens once, whichever response is lost`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let phone = try await Phone(of: ana, at: shared)
    try await phone.store.refresh()
    let seen = Tally<String>()
    // Each request of the outbox loses its response three times, so that calls give up, and later ones continue.
    phone.proxy.plan { exchange, _ in
      exchange.method != "GET" && !exchange.path.contains("/cache/") && seen.count(exchange.path) % 4 != 0
        ? .loseResponse : .none
    }
    let own = Event.ID()
    try await phone.store.perform(.createEvent(.planned("Quiz", inviting: [ben]), id: own))
    try await phone.store.perform(.editEvent(own, applying: EventEdit(title: "Quiz 1")))
    try await phone.store.perform(.createEvent(.planned("Picnic"), id: .init()))
    try await phone.store.perform(.editProfile(ProfileEdit(bio: .set("Hello."))))
    try await phone.catchUp()
    let events = try await ana.client.events.list().items
    #expect(Set(events.map(\.title)) == ["Quiz 1", "Picnic"] && events.count == 2)
    #expect(events.first { $0.title == "Quiz 1" }?.version == 2)
    #expect(phone.store.outbox.pending.isEmpty && phone.store.outbox.refusals.isEmpty)
    try await phone.expectTruth()
    await phone.end()
  }

  private func expectUnreachable(
    _ call: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    do {
      try await call()
      Issue.record("no error", sourceLocation: sourceLocation)
    } catch MusterError.unreachable {
    } catch {
      Issue.record("\(error)", sourceLocation: sourceLocation)
    }
  }
}
