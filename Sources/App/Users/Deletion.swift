import Postgres

extension User {
  /// Erases an account and all that is held about its owner; what was between them and others ends as if they had left.
  ///
  /// - Their coming events are cancelled, and everybody invited who has not declined is told. They and the past ones
  ///   stay, without a creator.
  /// - They are off every guest list; whoever waited longest for their place has it.
  /// - Nothing in the queue is for them any more, or names them.
  /// - The username stays free of others for 30 days.
  ///
  /// - Throws: ``AppError/sessionEnded`` without an account.
  static func erase(_ id: ID, in change: Change) async throws {
    // No new friend, request, event, invitation or session of theirs from here on: whoever makes one locks the row for
    // share. Not FOR UPDATE before the end, when nothing is left to wait for: changing an event twice looks its creator up.
    guard try await change.lock(id, for: .update).contains(id) else { throw AppError.sessionEnded }
    try await change.rows(
      """
      SELECT id FROM events
      WHERE id IN (
        SELECT id FROM events WHERE creator_id = \(id)
        UNION ALL
        SELECT event_id FROM invitations WHERE user_id = \(id)
      )
      ORDER BY id
      FOR NO KEY UPDATE
      """)
    try await Session.endAll(of: id, in: change)
    try await change.pipeline(
      "UPDATE sessions SET device = NULL WHERE user_id = \(id)",
      // After the sessions: a stolen token's notification is written under the lock of its session.
      """
      DELETE FROM notification_queue
      WHERE recipient_id = \(id) OR subject_id = \(id) OR payload->>'userId' = \(id)::text
      """,
      """
      INSERT INTO retired_usernames (digest, until)
      SELECT \(digest(of: "username")), now() + interval '30 days' FROM users WHERE id = \(id)
      ON CONFLICT (digest) DO UPDATE SET until = excluded.until
      """)
    try await Identity.revokeGrants(of: id, in: change)
    change.touchWhoSees(id)
    // All of theirs too, although they go: so they are locked in the same order as everybody's.
    for collection in Collection.allCases { change.touch(collection, of: id) }
    try await cancelComingEvents(of: id, in: change)
    try await leaveGuestLists(id, in: change)
    // With it go the picture, friendships, requests, identities, stamps and mail tokens.
    change.erase("DELETE FROM users WHERE id = \(id)")
  }

  /// Cancels what a person was still going to host. Their events are locked by the caller, and touched.
  private static func cancelComingEvents(of host: ID, in change: Change) async throws {
    // An event is live for a day after its end.
    let cancelled = try await change.rows(
      """
      UPDATE events
      SET status = 'cancelled', version = version + 1, updated_at = clock_timestamp()
      WHERE creator_id = \(host) AND status = 'scheduled' AND archived_at IS NULL
        AND live_until > clock_timestamp() + interval '24 hours'
      RETURNING id, title
      """)
    for row in cancelled {
      let event: Event.ID = try row["id"]
      change.notify(
        usersIn: "SELECT user_id FROM invitations WHERE event_id = \(event) AND status <> 'declined'",
        .eventCancelled(event, try row["title"]))
    }
  }

  /// Takes a person off all guest lists, the counts with them. The events are locked by the caller.
  private static func leaveGuestLists(_ guest: ID, in change: Change) async throws {
    let left = try await change.rows(
      """
      WITH gone AS (
        DELETE FROM invitations WHERE user_id = \(guest) RETURNING event_id, status
      )
      UPDATE events AS e
      SET invited_count = e.invited_count - (gone.status = 'invited')::integer,
        going_count = e.going_count - (gone.status = 'going')::integer,
        maybe_count = e.maybe_count - (gone.status = 'maybe')::integer,
        declined_count = e.declined_count - (gone.status = 'declined')::integer,
        waitlisted_count = e.waitlisted_count - (gone.status = 'waitlisted')::integer
      FROM gone
      WHERE e.id = gone.event_id
      RETURNING e.id, e.title, e.archived_at IS NULL AS is_live,
        gone.status = 'going' AND e.status = 'scheduled' AND e.archived_at IS NULL AND e.waitlisted_count > 0
          AS frees_place
      """)
    let ids: [Event.ID] = try left.filter { try $0["is_live"] }.map { try $0["id"] }
    guard !ids.isEmpty else { return }
    change.touch(.events, ofUsersIn: "SELECT creator_id FROM events WHERE id = ANY(\(ids))")
    // One guest fewer may be what brings the counts back into the lists.
    change.touch(
      .events, .invitations,
      ofUsersIn: """
        SELECT i.user_id
        FROM events AS e
        JOIN invitations AS i ON i.event_id = e.id
        WHERE e.id = ANY(\(ids))
          AND e.invited_count + e.going_count + e.maybe_count + e.declined_count + e.waitlisted_count
            <= \(Event.maximumCounted)
        """)
    for row in try left.filter({ try $0["frees_place"] }) {
      try await Invitation.promoteWaiting(to: try row["id"], titled: try row["title"], in: change)
    }
  }
}

extension User {
  /// Gives back names of deleted accounts whose time is over.
  static func freeNames(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.batch(
      """
      DELETE FROM retired_usernames
      WHERE digest IN (SELECT digest FROM retired_usernames WHERE until <= now() LIMIT \(limit))
      """)[0].affected
  }
}
