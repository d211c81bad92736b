import Foundation
import Postgres

/// Visitors of the demo's events.
extension DemoSeed {
  /// A guest without an account, who has answered through the event's first share link.
  struct VisitorSeed: Decodable {
    let id: UUID
    let name: String
    let answer: String
    let plusOnes: Int?
    /// Whether the answer waits for a host's approval.
    let isPending: Bool?
  }

  /// Only for a new event. The caller counts the guests afterwards.
  func plantVisitors(of event: EventSeed, invitedAt: Timestamp, linkKey kid: String, in change: Change) throws {
    for (place, visitor) in (event.visitors ?? []).enumerated() {
      guard let link = event.links?.first else {
        throw AppError.invalidSeed("\(event.title) has visitors, but no share link.")
      }
      let isPending = visitor.isPending ?? false
      let answeredAt = Timestamp(microseconds: invitedAt.microseconds + Int64(place))
      try change.write(
        """
        INSERT INTO visitors (
          id, event_id, link_id, kid, name, status, wanted, plus_ones, created_at, answered_at
        )
        VALUES (
          \(visitor.id), \(event.id), \(link.id), \(kid), \(visitor.name), \(isPending ? "pending" : visitor.answer),
          \(isPending ? visitor.answer : nil), \(Int32(visitor.plusOnes ?? 0)), \(answeredAt), \(answeredAt)
        )
        ON CONFLICT DO NOTHING
        """)
    }
  }
}
