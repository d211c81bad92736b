import Foundation
import MusterKit
import TestSupport
import Testing

/// The writes of hosts, answers with plus-ones, links, the calendar, the picture and the inbox. The three users are friends,
/// apart from ben and cleo. Where a second effect would not show in the outcome, a read compares it with the response.
extension WriteScript {
  /// A picture of one pixel.
  private static let picture = Data(
    base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNwaDgAAAKEAYEml6crAAAAAElFTkSuQmCC")

  func host() async throws {
    let picnic = try await plan(inviting: [ben, cleo])
    let copy = try await ana.client.events.duplicate(
      picnic.id, as: EventCopy(startTime: picnic.startTime.addingTimeInterval(7 * 86_400), invite: true))
    #expect(copy.counts == Counts(invited: 1))
    try await share(copy.id)
    try await readNews()
    try await makeCalendars()
    try await changePictures()
  }

  /// Leaves an event with the answers of one guest, who was a host for a while, and of another one.
  private func plan(inviting guests: [TestUser]) async throws -> Event {
    var draft = EventDraft.planned("Picnic", inviting: guests)
    draft.maxPlusOnes = 2
    let event = try await ana.client.events.create(draft)
    #expect(try await ana.client.events.remindGuests(of: event.id) == 2)
    let answered = try await ben.client.events.answer(.going, to: event.id, plusOnes: 2)
    #expect(answered.myPlusOnes == 2 && answered.counts?.going == 3)
    let set = try await ana.client.events.setAnswer(of: Guest.ID(cleo.id), at: event.id, to: .maybe)
    #expect(set.counts == Counts(going: 3, maybe: 1))
    #expect(try await ana.client.events.addHost(cleo.id, to: event.id).hosts.map(\.id) == [ana.id])
    let offer = try #require(try await cleo.client.proposals.list().items.first)
    #expect(try await cleo.client.proposals.accept(offer.id).hosts.map(\.id) == [ana.id, cleo.id])
    try await ana.client.events.removeHost(cleo.id, from: event.id)
    return event
  }

  /// Leaves one link of two.
  private func share(_ event: Event.ID) async throws {
    let links = ana.client.events.links
    let kept = try await links.create(ShareLinkDraft(kind: .view), for: event)
    let made = try await links.create(ShareLinkDraft(kind: .view, shows: .names), for: event)
    let edited = try await links.edit(made.id, of: event, applying: ShareLinkEdit(kind: .answer, approval: true))
    #expect(edited.url == made.url && edited.approval)
    let token = try #require(made.url.flatMap(ShareLink.token))
    #expect(try await cleo.client.links.join(using: token).myStatus == .pending)
    #expect(try await ana.client.events.approve(Guest.ID(cleo.id), at: event).counts == Counts(invited: 2))
    #expect(try await links.get(made.id, of: event).joined == 1)
    try await links.revoke(made.id, of: event)
    #expect(try await links.list(of: event).map(\.id) == [kept.id])
  }

  /// The users mark what has arrived, each in another way. Ana's friend requests are not among it: she has not verified
  /// her address.
  private func readNews() async throws {
    let oldest = try #require(try await inbox(of: ben, count: 3).items.last)
    #expect(try await ben.client.notifications.markRead(ids: [oldest.id]) == 2)
    let stamp = try #require(try await inbox(of: ana, count: 5).timestamp)
    #expect(try await ana.client.notifications.markRead(before: stamp) == 0)
    // Leaving the first event has erased what was about it.
    _ = try await inbox(of: cleo, count: 2)
    #expect(try await cleo.client.notifications.markAllRead() == 0)
  }

  /// Waits until the inbox has at least `count` items. If a write was carried out twice, it has more.
  private func inbox(of user: TestUser, count: Int) async throws -> Page<InboxItem> {
    var page: Page<InboxItem>?
    do {
      try await eventually {
        page = try await user.client.notifications.list()
        return (page?.items.count ?? 0) >= count
      }
    } catch { Issue.record("\(user.username): \(page?.items.map(\.message) ?? []): \(error)") }
    return try #require(page)
  }

  /// Leaves the second of two links of ana, and none of ben.
  private func makeCalendars() async throws {
    let first = try await ana.client.me.makeCalendarLink()
    let second = try await ana.client.me.makeCalendarLink()
    #expect(first != second)
    #expect(try await ana.client.me.calendarLink() == second)
    try await ben.client.me.makeCalendarLink()
    try await ben.client.me.revokeCalendarLink()
  }

  private func changePictures() async throws {
    let picture = try #require(Self.picture)
    let shown = try await ana.client.me.setPicture(picture, contentType: "image/png").pictureUrl
    #expect(try await ana.client.me.get().pictureUrl == shown)
    try await ben.client.me.setPicture(picture, contentType: "image/png")
    try await ben.client.me.removePicture()
  }
}
