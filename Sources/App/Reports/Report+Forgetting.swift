import Postgres

extension Report {
  /// Removes a user whose account is being deleted. Their own reports stay without their name and words, because they
  /// are about others. Of the reports about them, closed ones are deleted, and open ones expire. The caller has locked
  /// the user's row.
  static func forget(_ user: User.ID, in change: Change) throws {
    // In id order: two users who delete their accounts may have reported each other.
    try change.write(
      """
      SELECT id FROM reports WHERE reporter_id = \(user) OR owner_id = \(user)
      ORDER BY id
      FOR UPDATE
      """)
    try change.write("UPDATE reports SET reporter_id = NULL, text = NULL WHERE reporter_id = \(user)")
    try change.write("DELETE FROM reports WHERE owner_id = \(user) AND closed_at IS NOT NULL")
    try change.write(keepingTraces(of: user))
    try change.write("UPDATE reports SET expires_at = \(expiry) WHERE owner_id = \(user)")
  }

  /// Days for which users can report the sender of a friend request or an invitation who has deleted the account.
  private static let daysToReport = 30

  /// A statement that keeps who may still report the user: those with a request from them, the guests of their live
  /// events, and those who had blocked them.
  private static func keepingTraces(of user: User.ID) -> SQL {
    """
    INSERT INTO departed_senders (digest, until)
    SELECT \(trace(of: "\(user)", to: "receivers.id")), now() + make_interval(days => \(Int32(daysToReport)))
    FROM (
      SELECT receiver_id AS id FROM friend_requests WHERE sender_id = \(user)
      UNION
      SELECT i.user_id FROM invitations AS i
      JOIN event_hosts AS h ON h.event_id = i.event_id
      JOIN events AS e ON e.id = h.event_id
      WHERE h.user_id = \(user) AND e.archived_at IS NULL
      UNION
      SELECT blocker_id FROM shown_blocks WHERE blocked_id = \(user)
    ) AS receivers
    ON CONFLICT DO NOTHING
    """
  }

  /// The digest that shows that one user has written to another one.
  static func trace(of sender: SQL, to receiver: SQL) -> SQL {
    "sha256(uuid_send(\(sender)::uuid) || uuid_send(\(receiver)::uuid))"
  }

  /// Deletes expired reports, and traces of deleted accounts.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("reports", by: "expires_at", upTo: "now()", atMost: limit)
      + database.purge("departed_senders", key: "digest", by: "until", upTo: "now()", atMost: limit)
  }
}
