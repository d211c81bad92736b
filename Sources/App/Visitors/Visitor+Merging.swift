import Logging
import Postgres

/// Visitors whose address an account has verified become guests with this account.
///
/// The change that verifies the address marks its confirmed visitors, and a worker merges each in a change of its own:
/// it locks the hosts of the event, in the order of ids, which a login could not. A mark is lost only together with the
/// verification, and a merge removes the row that has the mark, so each visitor is merged exactly once.
extension Visitor {
  /// Marks the confirmed visitors with an account's verified address. The caller has locked the account.
  static func claim(for user: User.ID, in change: Change) async throws {
    // Serializes with visitors who confirm this address now: the marking sees what they have committed. It locks in the
    // order of ids. Changes that move several visitors may not; a deadlock with one of them repeats this change.
    try await change.pipeline(
      """
      SELECT \(turn) FROM users AS u WHERE u.id = \(user) AND u.email_verified_at IS NOT NULL AND u.email IS NOT NULL
      """,
      """
      WITH claimed AS MATERIALIZED (
        SELECT v.id, u.id AS user_id
        FROM visitors AS v
        JOIN users AS u ON u.email_key = v.email_key
        WHERE u.id = \(user) AND u.email_verified_at IS NOT NULL AND v.confirmed_at IS NOT NULL
        ORDER BY v.id
        FOR NO KEY UPDATE OF v
      )
      UPDATE visitors AS v SET merges_into = claimed.user_id
      FROM claimed
      WHERE v.id = claimed.id
      """)
    change.wakeWorkers()
  }

  /// A query of the marked visitors whose address an account still has: `id` and `event_id`. It may be continued with
  /// AND and ORDER BY.
  static func merging(into user: User.ID) -> SQL {
    """
    SELECT v.id, v.event_id FROM visitors AS v JOIN users AS u ON u.id = v.merges_into
    WHERE v.merges_into = \(user) AND u.email_verified_at IS NOT NULL AND u.email_key = v.email_key
    """
  }

  /// Merges the visitors that are marked now. One who waits for approval keeps the mark, and is merged with the answer
  /// that applies then.
  ///
  /// - Returns: how many marks are gone.
  static func mergeMarked(in database: Database, logger: Logger) async throws -> Int {
    let marked = try await database.rows(
      """
      SELECT id, event_id, merges_into FROM visitors
      WHERE merges_into IS NOT NULL AND status <> 'pending'
      ORDER BY id
      LIMIT 100
      """)
    var merged = 0
    for row in marked {
      do {
        let (id, event): (ID, Event.ID) = (try row["id"], try row["event_id"])
        let user: User.ID = try row["merges_into"]
        try await database.change { try await merge(id, at: event, into: user, in: $0) }
        merged += 1
      } catch let error where !Task.isCancelled {
        // The others must not wait for this one.
        logger.warning("a visitor cannot be merged", metadata: ["error": "\(error)"])
      }
    }
    return merged
  }

  /// Merges a marked visitor into an account. Without an invitation, the account gets one with the visitor's state and
  /// place in the line. Otherwise the newer answer wins, except that a place is never given up for a place in the line.
  /// A host, and a user hidden from a host, cannot be a guest: the visitor is removed.
  static func merge(_ id: ID, at event: Event.ID, into user: User.ID, in change: Change) async throws {
    // As for joining through a link: no names change meanwhile, and no block comes between the user and a host.
    let expected: [User.ID] = try await change.rows(Event.hosts(of: event)).map { try $0["user_id"] }
    let locked = try await change.lock(users: expected + [user], for: .share)
    _ = try await change.first("SELECT 1 FROM events WHERE id = \(event) FOR NO KEY UPDATE")
    let rows = try await change.pipeline(
      """
      SELECT \(columns), v.answered_at, u.id IS NOT NULL AS is_owner
      FROM visitors AS v
      LEFT JOIN users AS u ON u.id = v.merges_into AND u.email_verified_at IS NOT NULL
        AND u.email_key = v.email_key
      WHERE v.id = \(id) AND v.event_id = \(event) AND v.merges_into = \(user) AND v.status <> 'pending'
      """,
      """
      SELECT h.user_id, h.user_id IN (SELECT hidden_id FROM hidden WHERE user_id = \(user)) AS is_hidden
      FROM (\(Event.hosts(of: event))) AS h
      """,
      "SELECT status, plus_ones, answered_at FROM invitations WHERE event_id = \(event) AND user_id = \(user)")
    // Another worker was faster, or the visitor is gone.
    guard let row = rows[0].first else { return }
    guard try row["is_owner"] else {
      // The account is gone, or has another address by now.
      return try change.write("UPDATE visitors SET merges_into = NULL WHERE id = \(id) AND merges_into = \(user)")
    }
    let hosts: [User.ID] = try rows[1].map { try $0["user_id"] }
    // A new host whose row is not locked. The next try locks it.
    guard locked.isSuperset(of: hosts) else { throw AppError.contended }
    let (visitor, answeredAt): (Visitor, Timestamp) = (try Visitor(row: row), try row["answered_at"])
    let isHidden = try rows[1].contains { try $0["is_hidden"] }
    // They have the name that was typed into the form, and not the account's.
    try forgetNotices(about: [id], at: event, in: change)
    if isHidden || hosts.contains(user) {
      return try await leave(where: "v.id = \(id)", by: isHidden ? .block : .visitor, in: change)
    }
    if let invitee = rows[2].first {
      return try await combine(visitor, answeredAt, with: invitee, of: user, in: change)
    }
    try change.write("DELETE FROM visitors WHERE id = \(id)")
    try change.write(
      """
      INSERT INTO invitations (event_id, user_id, status, plus_ones, answered_at)
      VALUES (
        \(event), \(user), \(visitor.group.status), \(Int32(visitor.group.plusOnes)),
        \(visitor.group.status == .pending ? nil : answeredAt)
      )
      """)
    try change.write("UPDATE events SET visitor_count = visitor_count - 1 WHERE id = \(event)")
    change.touch(.events, .invitations, of: user)
  }

  /// Merges into an invitation that the account has. The places of both are counted until then, so nothing is oversold.
  private static func combine(
    _ visitor: Visitor, _ answeredAt: Timestamp, with invitee: Row, of user: User.ID, in change: Change
  ) async throws {
    let old = Invitation.Group(status: try invitee["status"], plusOnes: try invitee["plus_ones"])
    let inviteeAnsweredAt: Timestamp? = try invitee["answered_at"]
    let answer = merged(visitor.group, answeredAt, with: old, inviteeAnsweredAt)
    if answer.group != old || answer.at != inviteeAnsweredAt {
      try change.write(
        """
        UPDATE invitations
        SET status = \(answer.group.status), plus_ones = \(Int32(answer.group.plusOnes)), answered_at = \(answer.at)
        WHERE event_id = \(visitor.event) AND user_id = \(user)
        """)
      try change.write("UPDATE events SET \(old.counting(as: answer.group)) WHERE id = \(visitor.event)")
      change.touch(.events, .invitations, of: user)
    }
    // After the invitation has its new state: this promotes, if the two had more places than they keep.
    try await leave(where: "v.id = \(visitor.id)", by: .visitor, in: change)
    if old.status == .going || old.status == .waitlisted {
      try await Invitation.promoteWaiting(at: [visitor.event], by: .visitor, in: change)
    }
  }

  /// The state of an invitee who was also a visitor.
  static func merged(
    _ visitor: Invitation.Group, _ visitorAt: Timestamp, with invitee: Invitation.Group, _ inviteeAt: Timestamp?
  ) -> (group: Invitation.Group, at: Timestamp?) {
    // No host has approved the visitor, so the answer does not count yet.
    if visitor.status == .pending { return (invitee, inviteeAt) }
    guard let inviteeAt else { return (visitor, visitorAt) }
    // If both wait, keep the earlier place and the newer number of people.
    if visitor.status == .waitlisted, invitee.status == .waitlisted {
      return (visitorAt > inviteeAt ? visitor : invitee, min(visitorAt, inviteeAt))
    }
    let (newer, older) =
      visitorAt > inviteeAt
      ? ((visitor, visitorAt), (invitee, inviteeAt)) : ((invitee, inviteeAt), (visitor, visitorAt))
    return newer.0.status == .waitlisted && older.0.status == .going ? older : newer
  }

  private static let turn: SQL = "pg_advisory_xact_lock(\(addressTurns), hashtext(u.email_key))"
}
