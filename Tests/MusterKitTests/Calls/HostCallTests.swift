import Foundation
import MusterKit
import Testing

/// The calls of hosts, and those about links, against a real server.
@Suite struct HostCallTests {
  private func friends() async throws -> (ana: TestUser, ben: TestUser, cleo: TestUser) {
    let server = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
    let cleo = try await TestUser.register("cleo", at: server.url)
    try await ana.befriend(cleo)
    return (ana, ben, cleo)
  }

  private func slug(_ call: () async throws -> Void) async -> Problem.Slug? {
    do {
      try await call()
      return nil
    } catch { return (error as? MusterError)?.problem?.type }
  }

  @Test func `a co-host edits, invites and answers for guests, and leaves`() async throws {
    let (ana, ben, cleo) = try await friends()
    var draft = EventDraft.planned("Picnic", inviting: [cleo])
    draft.maxPlusOnes = 2
    draft.answerBy = draft.startTime.addingTimeInterval(-86_400)
    let event = try await ana.client.events.create(draft)
    #expect(event.maxPlusOnes == 2 && event.answerBy == draft.answerBy && event.myRole == .creator)
    for accepts in [false, true] {
      #expect(try await ana.client.events.addHost(ben.id, to: event.id).hosts.map(\.id) == [ana.id])
      #expect(try await ana.client.events.hostOffers(of: event.id).map(\.id) == [ben.id])
      let offer = try #require(try await ben.client.proposals.list().items.first)
      #expect(offer.kind == .host && offer.event.id == event.id && offer.person?.id == ana.id)
      guard accepts else {
        try await ben.client.proposals.decline(offer.id)
        #expect(await slug { try await ben.client.proposals.accept(offer.id) } == .proposalNotFound)
        continue
      }
      #expect(try await ben.client.proposals.accept(offer.id).hosts.map(\.id) == [ana.id, ben.id])
    }
    let seen = try await ben.client.events.get(event.id)
    #expect((seen.myRole, seen.myStatus) == (.host, "host"))
    #expect(try await ben.client.events.edit(event.id, applying: EventEdit(title: "Brunch")).title == "Brunch")
    let answered = try await ben.client.events.setAnswer(of: Guest.ID(cleo.id), at: event.id, to: .going)
    #expect(answered.counts?.going == 1)
    let mine = try await cleo.client.events.answer(.going, to: event.id, plusOnes: 2)
    #expect(mine.myPlusOnes == 2 && mine.counts?.going == 3)
    #expect(await slug { try await cleo.client.events.addHost(cleo.id, to: event.id) } == .notTheCreator)
    #expect(
      await slug { _ = try await cleo.client.events.setAnswer(of: Guest.ID(ben.id), at: event.id, to: .maybe) }
        == .notAHost)
    try await ben.client.events.removeHost(ben.id, from: event.id)
    #expect(await slug { _ = try await ben.client.events.get(event.id) } == .eventNotFound)
    #expect(try await ana.client.events.get(event.id).hosts.map(\.id) == [ana.id])
  }

  @Test func `guests who have not answered are reminded, and an event is repeated`() async throws {
    let (ana, ben, cleo) = try await friends()
    let event = try await ana.client.events.create(.planned("Quiz", inviting: [ben, cleo]))
    try await ben.client.events.answer(.maybe, to: event.id)
    #expect(try await ana.client.events.remindGuests(of: event.id) == 1)
    // Each at most once a day.
    #expect(try await ana.client.events.remindGuests(of: event.id) == 0)
    let later = event.startTime.addingTimeInterval(7 * 86_400)
    let again = try await ana.client.events.duplicate(event.id, as: EventCopy(startTime: later, invite: true))
    #expect(again.id != event.id && again.title == "Quiz" && again.startTime == later)
    #expect(again.counts == Counts(invited: 2))
  }

  @Test func `a link is made, shown, changed, joined and revoked`() async throws {
    let (ana, _, _) = try await friends()
    let stranger = try await TestUser.register("dev", at: try await MusterServer.shared.value.url)
    let event = try await ana.client.events.create(.planned("Picnic"))
    let links = ana.client.events.links
    let made = try await links.create(ShareLinkDraft(kind: .view, shows: .names, maxGuests: 3), for: event.id)
    #expect((made.kind, made.shows, made.maxGuests, made.joined) == (.view, .names, 3, 0))
    let token = try #require(made.url.flatMap(ShareLink.token))
    #expect(await slug { try await stranger.client.links.join(using: token) } == .linkOnlyShows)
    let edited = try await links.edit(made.id, of: event.id, applying: ShareLinkEdit(kind: .answer, maxGuests: .clear))
    #expect((edited.kind, edited.maxGuests, edited.url) == (.answer, nil, made.url))
    let joined = try await stranger.client.links.join(using: token)
    #expect(joined.id == event.id && joined.myRole == .guest)
    #expect(try await links.get(made.id, of: event.id).joined == 1)
    #expect(try await links.list(of: event.id).map(\.id) == [made.id])
    #expect(await slug { _ = try await stranger.client.events.links.list(of: event.id) } == .notAHost)
    try await links.revoke(made.id, of: event.id)
    #expect(try await links.list(of: event.id).isEmpty)
    #expect(await slug { try await ana.client.links.join(using: token) } == .linkNotFound)
  }

  @Test func `a guest who needs an approval is approved or turned away`() async throws {
    let (ana, _, _) = try await friends()
    let url = try await MusterServer.shared.value.url
    let (dev, emre) = (try await TestUser.register("dev", at: url), try await TestUser.register("emre", at: url))
    let event = try await ana.client.events.create(.planned("Picnic"))
    let link = try await ana.client.events.links.create(ShareLinkDraft(kind: .answer, approval: true), for: event.id)
    let token = try #require(link.url.flatMap(ShareLink.token))
    for guest in [dev, emre] { #expect(try await guest.client.links.join(using: token).myStatus == .pending) }
    #expect(await slug { try await dev.client.events.answer(.going, to: event.id) } == .approvalPending)
    #expect(await slug { try await dev.client.events.approve(Guest.ID(dev.id), at: event.id) } == .notAHost)
    try await ana.client.events.approve(Guest.ID(dev.id), at: event.id)
    #expect(try await dev.client.events.answer(.going, to: event.id).myStatus == .going)
    try await ana.client.events.withdraw(Guest.ID(emre.id), from: event.id)
    #expect(try await ana.client.events.guests(of: event.id).items.map(\.user?.id) == [dev.id])
  }
}
