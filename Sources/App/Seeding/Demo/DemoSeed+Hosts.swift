import Foundation
import Postgres

/// Co-hosts and share links of the demo's events.
extension DemoSeed {
  struct LinkSeed: Decodable {
    let id: UUID
    let kind: ShareLink.Kind
    let shows: ShareLink.Shows
    let maxGuests: Int?
    let maxPlusOnes: Int?
    let approval: Bool?
    /// How many guests have joined through it.
    let joined: Int

    var settings: ShareLink.Settings {
      ShareLink.Settings(
        kind: kind, shows: shows, maxGuests: maxGuests, maxPlusOnes: maxPlusOnes ?? 0, approval: approval ?? true)
    }
  }

  /// Only for a new event, like its guests.
  func plantHosts(of event: EventSeed, invitedAt: Timestamp, linkKey kid: String, in change: Change) throws {
    let creator = try person(event.creator)
    for (place, name) in (event.coHosts ?? []).enumerated() {
      let host = try person(name)
      let addedAt = Timestamp(microseconds: invitedAt.microseconds + Int64(place))
      try change.write(
        """
        INSERT INTO event_co_hosts (event_id, user_id, added_at)
        SELECT \(event.id), \(host.id), \(addedAt)
        WHERE \(User.visible("\(creator.id)", to: host.user))
        """)
    }
    for link in event.links ?? [] {
      try change.write(
        """
        INSERT INTO share_links (
          id, event_id, creator_id, kid, \(ShareLink.Settings.columns.list), joined_count, created_at
        )
        VALUES (
          \(link.id), \(event.id), \(creator.id), \(kid), \(ShareLink.Settings.columns.values(of: link.settings)),
          \(link.joined), \(invitedAt)
        )
        ON CONFLICT DO NOTHING
        """)
    }
  }
}
