import Foundation
import MusterKit
import Observation

/// The first guests of an event, which the store keeps, and the actions of its hosts.
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

  init(of page: EventPage) { self.page = page }

  var groups: [Group] {
    let guests = page.event?.guests?.items ?? page.event?.participants ?? []
    return Self.order.map { status in Group(status: status, guests: guests.filter { $0.status == status }) }
      .filter { !$0.guests.isEmpty }
  }

  /// Whether the user is a host, and the event still changes.
  var canManage: Bool { page.event.map { $0.myRole != .guest && $0.status == .scheduled } ?? false }
  var canCancel: Bool { canManage && page.event?.myRole == .creator }

  /// Admits a guest who came through a link.
  func approve(_ guest: Guest) async { await page.home.perform(.approve(guest, at: page.id)) }
  /// Withdraws an invitation, or turns away a guest who waits for approval.
  func remove(_ guest: Guest) async { await page.home.perform(.withdraw(guest.id, from: page.id)) }
  func cancelEvent() async { await page.home.perform(.cancelEvent(page.id)) }

  /// The service makes the link, so this needs a network.
  func makeLink() async {
    let draft = ShareLinkDraft(kind: .answer)
    link = await page.home.attempt { try await page.home.client.events.links.create(draft, for: page.id) }?.url
  }
}

extension Guest {
  var label: String { plusOnes > 0 ? "\(name) and \(plusOnes) more" : name }
}
