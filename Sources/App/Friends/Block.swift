import Postgres

/// A user whom another user has blocked.
struct Block: Sendable {
  let person: Person
  let since: Timestamp

  init(row: Row) throws {
    person = try Person(row: row)
    since = try row["since"]
  }

  /// The users whom a user has blocked, newest first. This is the only list that shows hidden users, and only to the
  /// user who hid them. It leaves out users who blocked this user first: to this user, they do not exist.
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
  /// Hides two users from each other on behalf of one of them. Ends their friendship and their pending requests.
  /// Removes each from the guest lists of the other's live events, cancelled events included, because these would still
  /// show one to the other. Neither is notified. Queued notices and deliveries between them are dropped, and so are the
  /// stored responses to requests of one about the other.
  ///
  /// Repeating the call changes nothing. If the other user has blocked the caller before, no other change is made
  /// either, because it would reveal that block.
  ///
  /// - Throws: ``AppError/userNotFound`` if there is no such user.
  static func block(_ other: ID, by blocker: ID, in change: Change) async throws {
    guard other != blocker else { throw AppError.invalid("userId", .notAllowed, "must be another user") }
    // From here on, neither can befriend or invite the other, or send a request: these changes lock both users for
    // share.
    try await change.lockBoth(blocker, other, for: .update)
    let pair = [blocker, other]
    let results = try await change.pipeline(
      "SELECT 1 FROM blocks WHERE blocker_id = \(other) AND blocked_id = \(blocker)",
      // Later than a block in the opposite direction, even if the clock was set back.
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
      // Waits for edits of these events and answers to them. The notices that they queue are then visible below.
      Event.locking(events(between: pair), where: "archived_at IS NULL"))
    guard results[0].isEmpty, results[1].affected == 1 else { return }
    let live: [Event.ID] = try results[2].map { try $0["id"] }
    let ended = try await change.pipeline(
      """
      DELETE FROM friendships
      WHERE user_a = least(\(blocker), \(other)) AND user_b = greatest(\(blocker), \(other))
      """,
      // As if the blocker had cancelled or declined the request.
      """
      UPDATE friend_requests
      SET status = CASE WHEN sender_id = \(blocker) THEN 'cancelled' ELSE 'declined' END, closed_at = now()
      WHERE status = 'pending' AND least(sender_id, receiver_id) = least(\(blocker), \(other))
        AND greatest(sender_id, receiver_id) = greatest(\(blocker), \(other))
      RETURNING sender_id, receiver_id, filtered
      """,
      // In this order: fan-out writes deliveries, and a removal from the queue waits for fan-out.
      removingNotices(between: blocker, and: other), removingDeliveries(between: blocker, and: other),
      IdempotentRequest.forgetting(between: blocker, and: other))
    if ended[0].affected > 0 { change.touch(.friends, of: blocker, other) }
    for request in ended[1] {
      let (sender, receiver): (ID, ID) = (try request["sender_id"], try request["receiver_id"])
      change.touch(.sentFriendRequests, of: sender)
      if try !request["filtered"] { change.touch(.friendRequests, of: receiver) }
    }
    if !live.isEmpty {
      try await Event.partHosts(of: live, in: change)
      try await Guest.leave(
        invitees: "i.event_id = ANY(\(live)) AND i.user_id = ANY(\(pair))",
        visitors: "v.event_id = ANY(\(live)) AND \(Visitor.isProposed(to: "\(blocker), \(other)"))", by: .block,
        in: change)
      try await Event.withdrawOffers(to: pair, at: live, in: change)
    }
    change.touch(.blocks, of: blocker)
    change.touchInboxes(naming: pair)
    change.touchSharedEvents(of: pair)
  }

  /// Removes a block. Nothing that it ended is restored, and a block in the opposite direction stays. Without a block,
  /// the call changes nothing.
  ///
  /// - Throws: ``AppError/userNotFound`` if there is no such user.
  static func unblock(_ other: ID, by blocker: ID, in change: Change) async throws {
    try await change.lockBoth(blocker, other, for: .update)
    let results = try await change.pipeline(
      "SELECT blocker_id FROM shown_blocks WHERE blocker_id = \(blocker) AND blocked_id = \(other)",
      "DELETE FROM blocks WHERE blocker_id = \(blocker) AND blocked_id = \(other)",
      "SELECT 1 FROM blocks WHERE blocker_id = \(other) AND blocked_id = \(blocker)")
    // Removing a block that the list did not show changes nothing that the blocker sees.
    guard !results[0].isEmpty else { return }
    change.touch(.blocks, of: blocker)
    if results[2].isEmpty {
      change.touchInboxes(naming: [blocker, other])
      change.touchSharedEvents(of: [blocker, other])
    } else {
      // The other user's block shows from now on, and the two stay hidden from each other.
      change.touch(.blocks, of: other)
    }
  }

  /// A query of the live events that a block between two users concerns. One of them hosts the event, and the other also
  /// hosts it, or is invited, or has a proposal about it. It includes events with both as co-hosts, because one may
  /// become the creator meanwhile.
  private static func events(between pair: [ID]) -> SQL {
    """
    SELECT i.event_id
    FROM invitations AS i
    JOIN event_hosts AS h ON h.event_id = i.event_id
    WHERE i.user_id = ANY(\(pair)) AND h.user_id = ANY(\(pair)) AND i.\(Event.isLive)
    UNION
    SELECT p.event_id
    FROM proposals AS p
    JOIN event_hosts AS h ON h.event_id = p.event_id
    WHERE p.user_id = ANY(\(pair)) AND h.user_id = ANY(\(pair))
    UNION
    SELECT h.event_id FROM event_hosts AS h
    WHERE h.user_id = ANY(\(pair)) AND h.\(Event.isLive)
    GROUP BY h.event_id
    HAVING count(*) = 2
    """
  }

  /// Removes each of two users from queued notices about the other or the other's events.
  private static func removingNotices(between one: ID, and other: ID) -> SQL {
    NotificationQueue.remove(
      """
      SELECT q.id, pair.reader_id AS recipient_id
      FROM \(pairs(one, other))
      JOIN notification_queue AS q ON q.person_id = pair.other_id
      UNION
      SELECT q.id, pair.reader_id
      FROM \(pairs(one, other))
      JOIN event_hosts AS h ON h.user_id = pair.other_id
      JOIN notification_queue AS q ON q.subject_id = h.event_id
      WHERE \(doesNotRemainHost("pair.reader_id", at: "h.event_id", besides: "pair.other_id"))
      """)
  }

  /// Deletes deliveries to each of two users about the other or the other's events, dead letters included.
  private static func removingDeliveries(between one: ID, and other: ID) -> SQL {
    let pair = [one, other]
    return Delivery.delete(
      where: """
        recipient_id = ANY(\(pair)) AND (
          person_id = ANY(\(pair)) AND person_id <> recipient_id
          OR EXISTS (
            SELECT FROM event_hosts AS h
            WHERE h.event_id = subject_id AND h.user_id = ANY(\(pair)) AND h.user_id <> recipient_id
              AND \(doesNotRemainHost("recipient_id", at: "h.event_id", besides: "h.user_id"))
          )
        )
        """)
  }

  /// A SQL condition: whether a user does not host an event after a block between them and another host of it. The
  /// block ends the role of a co-host only if the other host is the creator.
  private static func doesNotRemainHost(_ user: SQL, at event: SQL, besides other: SQL) -> SQL {
    """
    NOT EXISTS (
      SELECT FROM event_hosts AS mine
      JOIN events AS e ON e.id = mine.event_id
      WHERE mine.event_id = \(event) AND mine.user_id = \(user)
        AND e.creator_id IS DISTINCT FROM \(other)
    )
    """
  }

  private static func pairs(_ one: ID, _ other: ID) -> SQL {
    "unnest(\([one, other]), \([other, one])) AS pair (reader_id, other_id)"
  }
}

extension Change {
  /// Locks the rows of the acting user and of the other user.
  ///
  /// - Throws: ``AppError/sessionEnded`` if the acting user does not exist, ``AppError/userNotFound`` if the other does
  ///   not.
  func lockBoth(_ user: User.ID, _ other: User.ID, for strength: LockStrength) async throws {
    let found = try await lock(user, other, for: strength)
    guard found.contains(user) else { throw AppError.sessionEnded }
    guard found.contains(other) else { throw AppError.userNotFound }
  }

  /// Touches the inboxes of two users in which one names the other, because these entries are hidden or shown from now
  /// on. The caller holds the locks on both users.
  fileprivate func touchInboxes(naming pair: [User.ID]) {
    touch(
      .notifications,
      ofUsersIn: "SELECT recipient_id FROM notifications WHERE recipient_id = ANY(\(pair)) AND person_id = ANY(\(pair))"
    )
  }

  /// Touches the lists of two users that show one of them as a host of a live event to the other. Both are co-hosts: a
  /// block leaves neither guests nor co-hosts of the other's events. The caller holds the locks on both users.
  fileprivate func touchSharedEvents(of pair: [User.ID]) {
    touch(
      .events,
      ofUsersIn: """
        SELECT mine.user_id
        FROM event_hosts AS mine
        JOIN event_hosts AS h ON h.event_id = mine.event_id AND h.user_id <> mine.user_id
        WHERE mine.user_id = ANY(\(pair)) AND h.user_id = ANY(\(pair)) AND mine.\(Event.isLive)
        """)
  }
}
