import Postgres

extension User {
  /// Erases an account and everything stored about its owner. Their ties to others end as if they had left.
  ///
  /// - Their events that have co-hosts pass to the one who has served longest.
  /// - Their other events that have guests stay, without a creator, a note, a place and a web address. Coming ones
  ///   are cancelled, and the guests who have not declined get a notification. Events that no one else sees are deleted.
  /// - They leave every guest list, including as visitors with their address. The guest who has waited longest gets
  ///   their place. An event whose creator is already gone is deleted with its last guest.
  /// - Nothing in the queue, among the dead letters or in an inbox is addressed to them, or names them.
  /// - Their reports of others stay without their name and words. Reports about them are deleted, open ones once they
  ///   are closed.
  /// - The username is retired for 30 days.
  ///
  /// - Parameter session: must be open; nil for the demo's accounts.
  /// - Throws: ``AppError/sessionEnded`` if there is no account.
  static func erase(_ id: ID, by session: Session.ID?, in change: Change) async throws {
    // From here on, they get no new friend, request, event, invitation or session: changes that create one lock the row
    // for share. FOR UPDATE comes only at the end, when nothing is left to wait for: changing an event twice looks up
    // its creator.
    guard try await change.lock(id, for: .update).contains(id) else { throw AppError.sessionEnded }
    if let session { try await Session.check(session, in: change) }
    let events = try await change.rows(
      Event.locking(
        """
        \(Event.hosted(by: id))
        UNION ALL
        SELECT event_id FROM invitations WHERE user_id = \(id)
        UNION ALL
        SELECT event_id FROM (\(Visitor.merging(into: id))) AS mine
        """)
    ).map { row -> Event.ID in try row["id"] }
    try await Session.endAll(of: id, in: change)
    try await change.pipeline(
      "UPDATE sessions SET device = NULL WHERE user_id = \(id)",
      // After the sessions, because the notice of a stolen token is written under the lock of its session. In this
      // order, because a removal from the queue waits for fan-out, and fan-out writes deliveries.
      lockingNotices(about: id), NotificationQueue.delete(where: "person_id = \(id)"), removingNotices(to: id),
      deletingDeliveries(of: id),
      "DELETE FROM mails WHERE id IN (SELECT id FROM mails WHERE user_id = \(id) ORDER BY id FOR UPDATE)",
      // The rows that are deleted at the end, after the stamps, must be locked by then: a purge may be deleting a
      // token, and two users who delete their accounts may have sent each other requests.
      "DELETE FROM mail_tokens WHERE user_id = \(id)",
      "DELETE FROM code_uses WHERE user_id = \(id)",
      "DELETE FROM share_links WHERE creator_id = \(id)",
      """
      SELECT id FROM friend_requests WHERE sender_id = \(id) OR receiver_id = \(id)
      ORDER BY id
      FOR UPDATE
      """,
      retiring("(SELECT username FROM users WHERE id = \(id))", of: nil))
    try await Identity.unlinkAll(from: id, in: change)
    try Report.forget(id, in: change)
    try change.touchWhoSees(id)
    // Also their own stamps, although they are deleted, so that these are locked in the same order as everyone's.
    for collection in Collection.allCases { change.touch(collection, of: id) }
    change.touch(.notifications, ofUsersIn: "SELECT recipient_id FROM notifications WHERE person_id = \(id)")
    try await Event.handOver(events, of: id, in: change)
    // Their archived events lose notes, places and web addresses in the calendar feeds of their guests.
    change.touch(.events, ofUsersIn: CalendarFeed.readers(ofArchivedEventsOf: id))
    try await cancelComingEvents(of: id, in: change)
    let personal = Columns(Event.Plan.personal.flatMap(\.columns))
    try change.write(
      """
      UPDATE events
      SET \(personal.nulls), updated_at = clock_timestamp()
      WHERE creator_id = \(id) AND num_nonnulls(\(personal.list)) > 0
      """)
    try forgetPersonalChanges(of: id, in: change)
    try await Guest.leave(
      invitees: "i.user_id = \(id)", visitors: "v.id IN (SELECT mine.id FROM (\(Visitor.merging(into: id))) AS mine)",
      by: .user(id), in: change)
    // Under the stamps of the inboxes, as when notifications are filed and marked as read.
    change.erase("DELETE FROM notifications WHERE recipient_id = \(id)")
    change.erase("DELETE FROM notifications WHERE person_id = \(id)")
    change.erase("DELETE FROM idempotency_keys WHERE user_id = \(id)")
    // Once more: fan-out may have written deliveries for notices that the removal above did not find.
    change.erase(deletingDeliveries(of: id))
    // Events that no one else sees.
    change.erase(
      SpentID.deletingEvents(
        where: """
          e.id = ANY(\(events)) AND (e.creator_id = \(id) OR e.creator_id IS NULL)
            AND NOT EXISTS (SELECT FROM event_guests AS g WHERE g.event_id = e.id)
          """))
    change.erase(SpentID.spendingRequests(of: id))
    // This also deletes the picture, devices, muted types, friendships, requests, blocks and stamps.
    change.erase("DELETE FROM users WHERE id = \(id)")
  }

  /// Locks waiting notices that name a user or are for them, in id order. Otherwise two users who delete their accounts
  /// and have sent each other requests would deadlock.
  private static func lockingNotices(about id: ID) -> SQL {
    """
    SELECT q.id FROM notification_queue AS q
    WHERE q.person_id = \(id) OR q.id IN (SELECT notice.id FROM (\(notices(to: id))) AS notice)
    ORDER BY q.id
    FOR UPDATE
    """
  }

  private static func removingNotices(to id: ID) -> SQL {
    NotificationQueue.remove(notices(to: id))
  }

  /// A query of waiting notices for a user about themselves, their events, their sessions, and people with whom they
  /// have a friend request. Fan-out removes recipients without an account from all other notices.
  private static func notices(to id: ID) -> SQL {
    """
    SELECT q.id, \(id) AS recipient_id
    FROM notification_queue AS q
    WHERE \(id) = ANY(q.recipient_ids) AND q.subject_id IN (
      \(Event.hosted(by: id))
      UNION ALL
      SELECT event_id FROM invitations WHERE user_id = \(id)
      UNION ALL
      SELECT event_id FROM host_offers WHERE user_id = \(id)
      UNION ALL
      SELECT \(Notice.subject("about.id"))
      FROM (
        SELECT \(id) AS id
        UNION ALL
        SELECT id FROM sessions WHERE user_id = \(id)
        UNION ALL
        SELECT sender_id FROM friend_requests WHERE receiver_id = \(id)
        UNION ALL
        SELECT receiver_id FROM friend_requests WHERE sender_id = \(id)
      ) AS about
    )
    """
  }

  /// Deletes deliveries to a user, and those that name them, dead letters included.
  private static func deletingDeliveries(of id: ID) -> SQL {
    Delivery.delete(where: "recipient_id = \(id) OR person_id = \(id)")
  }

  /// Removes the personal properties of a user's events from notices of edits, in the queue, in deliveries, and in
  /// inboxes. The caller has locked the events.
  private static func forgetPersonalChanges(of id: ID, in change: Change) throws {
    let personal = Event.Plan.personal.map(\.name)
    let edits: SQL = """
      n.type = 'event-updated' AND n.subject_id IN (SELECT id FROM events WHERE creator_id = \(id))
        AND jsonb_path_query_array(n.payload, '$.changes[*].field') ?| \(personal)
      """
    func scrubbing(_ table: SQL, _ rows: SQL) -> SQL {
      """
      UPDATE \(table) AS n
      SET payload = jsonb_set(n.payload, '{changes}', (
        SELECT jsonb_agg(
          CASE
            WHEN each.change->>'field' = ANY(\(personal)) THEN each.change || '{"old": null, "new": null}'
            ELSE each.change
          END ORDER BY each.place)
        FROM jsonb_array_elements(n.payload->'changes') WITH ORDINALITY AS each (change, place)
      ))
      WHERE \(rows)
      """
    }
    let guests: SQL = """
      SELECT i.user_id FROM invitations AS i JOIN events AS e ON e.id = i.event_id WHERE e.creator_id = \(id)
      """
    // In the order in which a notice moves, and in id order, as fan-out and workers lock.
    let waiting: SQL = "SELECT n.id FROM notification_queue AS n WHERE \(edits) ORDER BY n.id FOR UPDATE"
    try change.write(scrubbing("notification_queue", "n.id IN (\(waiting))"))
    let sending: SQL = """
      SELECT n.id FROM deliveries AS n WHERE n.recipient_id IN (\(guests)) AND \(edits) ORDER BY n.id FOR UPDATE
      """
    try change.write(scrubbing("deliveries", "n.id IN (\(sending))"))
    change.touch(.notifications, ofUsersIn: "SELECT n.recipient_id FROM notifications AS n WHERE \(edits)")
    change.erase(scrubbing("notifications", edits))
  }

  /// Cancels the coming events of a user. The caller has locked and touched these events.
  private static func cancelComingEvents(of creator: ID, in change: Change) async throws {
    let cancelled = try await change.rows(
      """
      UPDATE events
      SET status = 'cancelled', remind_at = NULL, version = version + 1, updated_at = clock_timestamp()
      WHERE creator_id = \(creator) AND \(Event.Phase.isOpen("events")) AND NOT \(Event.Phase.isOver("events"))
      RETURNING id, title, visitor_count
      """)
    let events = try cancelled.map { row -> (id: Event.ID, title: String) in (try row["id"], try row["title"]) }
    try await Proposal.forgetNotices(about: events.map(\.id), in: change)
    for row in cancelled where try row["visitor_count"] > 0 { change.mail(.visitors(.cancelled, at: try row["id"])) }
    // A guest of several of these events gets the notices in one order, whatever the order of the rows.
    change.notify(
      usersIn: """
        SELECT event_id, user_id FROM invitations WHERE event_id = ANY(\(events.map(\.id))) AND status <> 'declined'
        """,
      aboutEach: events.sorted(by: { $0.id < $1.id }).map { .eventCancelled($0.id, $0.title, by: creator) }, by: creator
    )
  }
}

extension User {
  /// Releases retired usernames whose time is over.
  static func freeNames(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("retired_usernames", key: "digest", by: "until", upTo: "now()", atMost: limit)
  }
}
