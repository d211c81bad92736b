import Foundation
import Postgres

/// Co-hosts and share links of the demo's events.
extension DemoSeed {
  struct LinkSeed: Decodable {
    let id: UUID
    let kind: String
    let shows: String
    let maxGuests: Int?
    let maxPlusOnes: Int?
    let approval: Bool?
    /// How many guests have joined through it.
    let joined: Int
  }

  /// Only for a new event, like its guests.
  func plantHosts(of event: EventSeed, invitedAt: Timestamp, linkKey kid: String, in change: Change) async throws {
    let creator = try person(event.creator)
    for (place, name) in (event.coHosts ?? []).enumerated() {
      let host = try person(name)
      let addedAt = Timestamp(microseconds: invitedAt.microseconds + Int64(place))
      try await change.rows(
        """
        INSERT INTO event_co_hosts (event_id, user_id, added_at)
        SELECT \(event.id), \(host.id), \(addedAt)
        WHERE \(User.visible("\(creator.id)", to: host.user))
        """)
    }
    for link in event.links ?? [] {
      try await change.rows(
        """
        INSERT INTO share_links (
          id, event_id, creator_id, kind, shows, kid, max_guests, max_plus_ones, approval, joined_count, created_at
        )
        VALUES (
          \(link.id), \(event.id), \(creator.id), \(link.kind), \(link.shows), \(kid),
          \(link.maxGuests.map(Int32.init)), \(Int32(link.maxPlusOnes ?? 0)), \(link.approval ?? true), \(Int32(link.joined)), \(invitedAt)
        )
        ON CONFLICT DO NOTHING
        """)
    }
  }
}
