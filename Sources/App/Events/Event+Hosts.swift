import Postgres

/// The hosts of an event: its creator and its co-hosts, as in the view `event_hosts`.
extension Event {
  /// The reader's role at an event.
  enum Role: String {
    case creator, host, guest

    /// - Parameter status: `creator`, `host`, or the state of an invitation.
    init(status: String) {
      self = Role(rawValue: status) ?? .guest
    }
  }

  /// The hosts whom the reader sees: the creator, and then the co-hosts by when they were added.
  var hosts: [Person] { (creator.map { [$0] } ?? []) + coHosts }

  /// A query of the hosts of events.
  static func hosts(of events: [ID]) -> SQL {
    "SELECT user_id FROM event_hosts WHERE event_id = ANY(\(events))"
  }

  /// A query of the hosts of an event.
  static func hosts(of event: ID) -> SQL {
    "SELECT user_id FROM event_hosts WHERE event_id = \(event)"
  }

  /// A SQL condition: whether a block hides a user from a host of an event. Such a user is never a guest of a live
  /// event.
  static func hides(_ user: SQL, fromHostsOf event: ID) -> SQL {
    "EXISTS (\(hosts(of: event)) AND user_id IN (SELECT user_id FROM hidden WHERE hidden_id = \(user)))"
  }

  /// A query of the events that a user hosts, archived ones included.
  static func hosted(by user: User.ID) -> SQL {
    "SELECT event_id FROM event_hosts WHERE user_id = \(user)"
  }

  /// A query of the live events that a user hosts.
  static func hostedLive(by user: User.ID) -> SQL { "\(hosted(by: user)) AND \(isLive)" }

  /// A SQL condition: whether a user hosts an event.
  static func isHosted(_ id: ID, by user: User.ID) -> SQL { "EXISTS (\(hosted(by: user)) AND event_id = \(id))" }

  /// A query of the live events that a user hosts or is invited to.
  static func liveConcerning(_ user: User.ID) -> SQL {
    "\(hostedLive(by: user)) UNION ALL SELECT event_id FROM invitations WHERE user_id = \(user) AND \(isLive)"
  }

  /// - Throws: ``AppError/notAHost`` for a guest, and ``AppError/eventNotFound`` for everyone else who is no host.
  static func checkHosts(_ event: ID, _ user: User.ID, in database: some Querying) async throws {
    let row = try await database.first(
      """
      SELECT \(isHosted(event, by: user)) AS hosts, \(isVisible(event, to: user)) AS sees
      """)
    if let row, try row["hosts"] { return }
    if let row, try row["sees"] { throw AppError.notAHost }
    throw AppError.eventNotFound
  }

  /// A query that locks events in id order.
  ///
  /// - Parameters:
  ///   - ids: a query of their ids.
  ///   - condition: on `events`.
  static func locking(_ ids: SQL, where condition: SQL = "true") -> SQL {
    // As one array: if an event has changed between the snapshot and its lock, PostgreSQL checks again whether it is
    // among the ids, and may not find it in a UNION ALL, such as in the view of the hosts.
    "SELECT id FROM events WHERE id = ANY(ARRAY(\(ids))) AND \(condition) ORDER BY id FOR NO KEY UPDATE"
  }

  /// A query of the hosts of an event and of its guests who have not declined.
  static func participants(in event: ID) -> SQL {
    "\(hosts(of: event)) UNION ALL \(Invitation.guestsComing(to: event))"
  }

  /// A query of `(event_id, user_id)` of the same at several events.
  static func participants(in events: [ID]) -> SQL {
    """
    SELECT event_id, user_id FROM event_hosts WHERE event_id = ANY(\(events))
    UNION ALL
    SELECT event_id, user_id FROM invitations WHERE event_id = ANY(\(events)) AND status <> 'declined'
    """
  }

  /// The co-hosts of `events AS e` whom a user sees, as a relation `co` with one row.
  static func coHosts(seenBy user: some SQLExpression<User.ID>) -> SQL {
    """
    LATERAL (
      SELECT CASE WHEN e.may_have_co_hosts THEN ARRAY(
        SELECT ROW(\(Person.columns("p")))
        FROM event_co_hosts AS h
        JOIN users AS p ON p.id = h.user_id
        WHERE h.event_id = e.id AND \(User.visible("h.user_id", to: user))
        ORDER BY h.added_at, h.user_id
      ) ELSE ARRAY[]::record[] END AS co_hosts
    ) AS co
    """
  }

  /// The names of all hosts of `events AS e` as an array, in the order of ``hosts``.
  static let hostNames: SQL = """
    ARRAY(
      SELECT u.display_name FROM event_hosts AS h JOIN users AS u ON u.id = h.user_id
      WHERE h.event_id = e.id
      ORDER BY h.added_at NULLS FIRST, u.id
    )
    """

  /// Touches the lists that show the hosts of events. The caller holds the locks on the events.
  ///
  /// - Parameter condition: on `user_id`, the owner of a list.
  static func touchWhoSeesHosts(of events: [ID], where condition: SQL = "true", in change: Change) throws {
    try moveStamps(of: "SELECT unnest(\(events))", in: change)
    change.touch(.events, ofUsersIn: "\(hosts(of: events)) AND \(condition)")
    change.touch(
      .events, .invitations,
      ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(events)) AND \(condition)")
  }
}
