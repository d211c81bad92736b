import Foundation
import MusterKit
import Observation

/// The guests of an event, of whom the store keeps the first, and the actions of its hosts.
@MainActor @Observable
final class GuestList {
  struct Group: Identifiable, Hashable {
    let status: GuestStatus
    let guests: [Guest]
    var id: GuestStatus { status }
    var title: String { "\(status.title): \(guests.reduce(0) { $0 + 1 + $1.plusOnes })" }
  }

  private static let order: [GuestStatus] = [.pending, .going, .maybe, .waitlisted, .invited, .declined]

  let page: EventPage
  private(set) var link: URL?
  /// Guests after the first ones, where they begin and end, and the event's counts before they were read. Once the first
  /// ones or the counts have changed, they no longer count.
  private var more: (guests: [Guest], start: String, end: String?, counts: Counts?)?

  init(of page: EventPage) { self.page = page }

  private var guests: [Guest] {
    let first = page.event?.guests?.items ?? page.event?.participants ?? []
    // Guests who answer meanwhile move in the list.
    let known = Set(first.map(\.id))
    return first + (rest?.guests ?? []).filter { !known.contains($0.id) }
  }

  private var rest: (guests: [Guest], start: String, end: String?, counts: Counts?)? {
    more?.start == page.event?.guests?.nextCursor && more?.counts == page.event?.counts ? more : nil
  }

  /// Where the list continues. Nil if it is complete.
  var next: String? { rest.map(\.end) ?? page.event?.guests?.nextCursor }

  /// Needs a network.
  func loadMore() async {
    guard let next, let start = page.event?.guests?.nextCursor else { return }
    let counts = page.event?.counts
    let found = await page.home.attempt { try await page.home.client.events.guests(of: page.id, cursor: next) }
    // Another tap may have been faster.
    guard let found, self.next == next else { return }
    more = ((rest?.guests ?? []) + found.items, start, found.nextCursor, counts)
  }

  var groups: [Group] {
    Self.order.map { status in Group(status: status, guests: guests.filter { $0.status == status }) }
      .filter { !$0.guests.isEmpty }
  }

  /// Whether the user is a host, and the event still changes.
  var canManage: Bool { page.event.map { $0.myRole != .guest && $0.status == .scheduled } ?? false }
  var canCancel: Bool { canManage && page.event?.myRole == .creator }

  /// Admits a guest who came through a link.
  func approve(_ guest: Guest) async { await change(.approve(guest, at: page.id)) }
  /// Withdraws an invitation, or turns away a guest who waits for approval.
  func remove(_ guest: Guest) async { await change(.withdraw(guest.id, from: page.id)) }

  /// Only the first guests show the change. The others are read again.
  private func change(_ write: Write) async {
    await page.home.perform(write)
    more = nil
  }

  /// Whether a guest is the user, who reports others only.
  func isUser(_ guest: Guest) -> Bool { guest.user.map { $0.id == page.home.client.userID } ?? false }
  func cancelEvent() async { await page.home.perform(.cancelEvent(page.id)) }

  /// The service makes the link, so this needs a network.
  func makeLink() async {
    let draft = ShareLinkDraft(kind: .answer)
    link = await page.home.attempt { try await page.home.client.events.links.create(draft, for: page.id) }?.url
  }
}

extension Guest {
  /// A visitor has no account.
  var reported: Report.Subject { user.map { .user($0.id) } ?? .guest(id) }
  var label: String { plusOnes > 0 ? "\(name) and \(plusOnes) more" : name }
}
