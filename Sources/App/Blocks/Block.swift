import Postgres

/// Somebody whom a user has blocked, and since when.
struct Block: Sendable {
  let person: Person
  let since: Timestamp

  init(row: Row) throws {
    person = try Person(row: row)
    since = try row["since"]
  }

  /// Newest first: the one list that shows people who are hidden, and only to whoever hid them. Who had blocked the user
  /// before is as good as gone, here too.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Block> {
    try await List.read(
      .blocks, of: user, page: page,
      query: Keyset(
        list: .blocks, columns: "\(Person.columns("u")), b.created_at AS since",
        source: "shown_blocks AS b JOIN users AS u ON u.id = b.blocked_id WHERE b.blocker_id = \(user)",
        time: "b.created_at", id: "b.blocked_id", order: .descending),
      in: database, item: Block.init(row:))
  }
}

extension User {
  /// Whether a user sees somebody, as a condition: neither has blocked the other. Everything that shows people to
  /// people has it in its SQL, and a verb on two people asks it after it has locked both.
  ///
  /// The set of those hidden is read once for a statement, however many rows it tests.
  ///
  /// - Parameter other: a column or value of a user's id that is not NULL.
  static func visible(_ other: SQL, to user: User.ID) -> SQL {
    "\(other) NOT IN (SELECT hidden_id FROM hidden WHERE user_id = \(user))"
  }

  /// Hides two people from each other, at the wish of one, and ends what is between them: friendship, pending requests,
  /// invitations of one to live events of the other, cancelled ones too, which could still show one to the other. Neither
  /// is notified, and what waits to be delivered between them is dropped. Repeating it changes nothing. Nor does it show
  /// any change to a user whom the other has blocked before, which would reveal that block.
  ///
  /// - Throws: ``AppError/userNotFound`` without such a user.
  static func block(_ other: ID, by blocker: ID, in change: Change) async throws {
    guard other != blocker else { throw AppError.invalid("userId", "must be somebody else") }
    // From here on neither befriends, asks or invites the other: a verb that does locks both for share.
    try await change.lockBoth(blocker, other, for: .update)
    let pair = [blocker, other]
    let answers = try await change.pipeline(
      "SELECT 1 FROM blocks WHERE blocker_id = \(other) AND blocked_id = \(blocker)",
      // Later than one in the other direction, whatever the clock says.
      """
      INSERT INTO blocks (blocker_id, blocked_id, created_at)
      SELECT \(blocker), \(other), greatest(
        clock_timestamp(),
        (
          SELECT created_at + interval '1 microsecond' FROM blocks
          WHERE blocker_id = \(other) AND blocked_id = \(blocker)
        ))
      ON CONFLICT DO NOTHING
      """,
      // Who edits or answers one of these is waited for: what that puts into the queue is then seen below.
      """
      SELECT id FROM events
      WHERE id IN (\(events(between: pair))) AND archived_at IS NULL
      ORDER BY id
      FOR NO KEY UPDATE
      """)
    guard answers[0].isEmpty, answers[1].affected == 1 else { return }
    let live: [Event.ID] = try answers[2].map { try $0["id"] }
    let ended = try await change.pipeline(
      """
      DELETE FROM friendships
      WHERE user_a = least(\(blocker), \(other)) AND user_b = greatest(\(blocker), \(other))
      """,
      // As if the blocker had taken it back, or declined it.
      """
      UPDATE friend_requests
      SET status = CASE WHEN sender_id = \(blocker) THEN 'cancelled' ELSE 'declined' END, closed_at = now()
      WHERE status = 'pending' AND least(sender_id, receiver_id) = least(\(blocker), \(other))
        AND greatest(sender_id, receiver_id) = greatest(\(blocker), \(other))
      RETURNING sender_id, receiver_id
      """,
      // In this order: fan-out, which a removal from the queue waits for, writes deliveries.
      removingNotices(between: blocker, and: other), removingDeliveries(between: blocker, and: other))
    if ended[0].affected > 0 { change.touch(.friends, of: blocker, other) }
    for request in ended[1] {
      let (sender, receiver): (ID, ID) = (try request["sender_id"], try request["receiver_id"])
      change.touch(.sentFriendRequests, of: sender)
      change.touch(.friendRequests, of: receiver)
    }
    if !live.isEmpty {
      try await Invitation.leave(
        where: "i.event_id = ANY(\(live)) AND i.user_id = ANY(\(pair))", by: nil, in: change)
    }
    change.touch(.blocks, of: blocker)
    change.touchInboxes(naming: pair)
  }

  /// Takes a block back. What it ended stays ended, and a block in the other direction stands. Without one it does
  /// nothing.
  ///
  /// - Throws: ``AppError/userNotFound`` without such a user.
  static func unblock(_ other: ID, by blocker: ID, in change: Change) async throws {
    try await change.lockBoth(blocker, other, for: .update)
    let answers = try await change.pipeline(
      "SELECT blocker_id FROM shown_blocks WHERE blocker_id = \(blocker) AND blocked_id = \(other)",
      "DELETE FROM blocks WHERE blocker_id = \(blocker) AND blocked_id = \(other)",
      "SELECT 1 FROM blocks WHERE blocker_id = \(other) AND blocked_id = \(blocker)")
    // One that did not show shows no change when it is lifted.
    guard !answers[0].isEmpty else { return }
    change.touch(.blocks, of: blocker)
    if answers[2].isEmpty {
      change.touchInboxes(naming: [blocker, other])
    } else {
      // Theirs shows from now on, and the two stay hidden from each other.
      change.touch(.blocks, of: other)
    }
  }

  /// A query of the events that one of two people hosts and the other is invited to. Nobody is invited to their own.
  private static func events(between pair: [ID]) -> SQL {
    """
    SELECT i.event_id
    FROM invitations AS i
    JOIN events AS e ON e.id = i.event_id
    WHERE i.user_id = ANY(\(pair)) AND e.creator_id = ANY(\(pair))
    """
  }

  /// Takes each of two people off waiting notices about the other or the other's events.
  private static func removingNotices(between one: ID, and other: ID) -> SQL {
    NotificationQueue.remove(
      """
      SELECT q.id, pair.reader_id AS recipient_id
      FROM \(pairs(one, other))
      JOIN notification_queue AS q ON q.person_id = pair.other_id
      UNION
      SELECT q.id, pair.reader_id
      FROM \(pairs(one, other))
      JOIN events AS e ON e.creator_id = pair.other_id
      JOIN notification_queue AS q ON q.subject_id = e.id
      """)
  }

  /// Deletes deliveries to each of two people about the other or the other's events, dead letters included. In id order,
  /// in which a worker acknowledges.
  private static func removingDeliveries(between one: ID, and other: ID) -> SQL {
    """
    DELETE FROM deliveries WHERE id IN (
      SELECT d.id
      FROM \(pairs(one, other))
      JOIN deliveries AS d ON d.recipient_id = pair.reader_id
      WHERE d.person_id = pair.other_id
        OR EXISTS (SELECT FROM events AS e WHERE e.id = d.subject_id AND e.creator_id = pair.other_id)
      ORDER BY d.id
      FOR UPDATE OF d
    )
    """
  }

  private static func pairs(_ one: ID, _ other: ID) -> SQL {
    "unnest(\([one, other]), \([other, one])) AS pair (reader_id, other_id)"
  }
}

extension Change {
  /// Locks the users' rows of who acts and of whom it is about.
  ///
  /// - Throws: ``AppError/sessionEnded`` if the one is gone, ``AppError/userNotFound`` if the other is.
  func lockBoth(_ user: User.ID, _ other: User.ID, for strength: LockStrength) async throws {
    let found = try await lock(user, other, for: strength)
    guard found.contains(user) else { throw AppError.sessionEnded }
    guard found.contains(other) else { throw AppError.userNotFound }
  }

  /// Touches the inboxes of two people that name the other, and show it no longer, or again. No other list of one shows
  /// the other: a block has ended all that would. The two are locked.
  fileprivate func touchInboxes(naming pair: [User.ID]) {
    touch(
      .notifications,
      ofUsersIn: "SELECT recipient_id FROM notifications WHERE recipient_id = ANY(\(pair)) AND person_id = ANY(\(pair))"
    )
  }
}
