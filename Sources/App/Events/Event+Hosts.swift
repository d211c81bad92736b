import Postgres

/// Who hosts an event: for now, its creator. The view `event_hosts` says so. Only ``lock(_:by:in:)`` compares the
/// creator, in the row that it locks.
extension Event {
  /// What the reader is at an event. No event has other hosts than its creator yet.
  enum Role: String {
    case creator, guest
  }

  var myRole: Role { myStatus == "creator" ? .creator : .guest }

  /// The hosts whom the reader sees, the creator first.
  var hosts: [Person] { creator.map { [$0] } ?? [] }

  /// A query of the hosts of events.
  static func hosts(of events: [ID]) -> SQL {
    "SELECT user_id FROM event_hosts WHERE event_id = ANY(\(events))"
  }

  /// A query of the hosts of an event.
  static func hosts(of event: ID) -> SQL {
    "SELECT user_id FROM event_hosts WHERE event_id = \(event)"
  }

  /// A query of the events that a user hosts, archived ones included.
  static func hosted(by user: User.ID) -> SQL {
    "SELECT event_id FROM event_hosts WHERE user_id = \(user)"
  }
}
