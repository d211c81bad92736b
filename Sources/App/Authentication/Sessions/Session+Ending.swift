import Postgres

extension Session {
  /// Ends a session: it can no longer be refreshed, its access tokens stop within a second, and its devices are
  /// forgotten. See ``EndedSessions``. If it does not end itself, the link to the user's calendar is revoked, unless all
  /// sessions that have made or read it are still open: the one who had a session that has ended may have kept the link,
  /// also if that session logged out itself. For the same reason, the user's networks are forgotten: see
  /// ``KnownNetwork``. Sessions that stay note theirs again.
  ///
  /// - Parameter caller: the session that ends it; nil if a stolen token does.
  /// - Returns: false if the user has no such open session.
  static func end(
    _ id: ID, of user: User.ID, by caller: ID?, now: Timestamp? = nil, in change: Change
  ) async throws -> Bool {
    let isEnded =
      try await change.pipeline(
        """
        UPDATE sessions SET ended_at = coalesce(\(now), clock_timestamp())
        WHERE id = \(id) AND user_id = \(user) AND \(isOpen)
        """,
        // After the session: a change that registers a device holds the session's row, and is waited for.
        Device.forgetting(where: "session_id = \(id) AND user_id = \(user)")
      )[0].affected == 1
    // Also after the session: a change that reads the link holds the session's row.
    if isEnded, caller != id {
      try change.write(CalendarLink.revokingIfLeaked(of: user))
      try change.write(KnownNetwork.forgetting(of: [user]))
    }
    return isEnded
  }

  /// Keeps a session open until the change ends, because its request may have been admitted long before. The user's row
  /// must be locked, as every change that ends all of a user's sessions locks it.
  ///
  /// - Throws: ``AppError/sessionEnded``.
  static func check(_ id: ID, in change: Change) async throws {
    let isOpen =
      try await change.first("SELECT 1 FROM sessions WHERE id = \(id) AND \(Self.isOpen) FOR SHARE") != nil
    guard isOpen else { throw AppError.sessionEnded }
  }

  /// Ends all sessions of a user, or all but one, and forgets their devices and networks. Revokes the link to the user's
  /// calendar, unless only the session that stays has ever known it. The user's row must be locked, so that no session
  /// starts meanwhile.
  ///
  /// - Returns: how many were open.
  @discardableResult
  static func endAll(of user: User.ID, except kept: ID? = nil, in change: Change) async throws -> Int {
    try await change.pipeline(
      """
      UPDATE sessions SET ended_at = clock_timestamp()
      WHERE user_id = \(user) AND id IS DISTINCT FROM \(kept) AND ended_at IS NULL
      """,
      Device.forgetting(where: "user_id = \(user) AND session_id IS DISTINCT FROM \(kept)"),
      KnownNetwork.forgetting(of: [user]),
      kept == nil ? CalendarLink.revoking(of: user) : CalendarLink.revokingIfLeaked(of: user)
    )[0].affected
  }

  /// Ends everyone's sessions with one row. Every process reads the row's number together with the ended sessions. A
  /// session carries the number that it started under, and so do its access tokens. So no clock decides which sessions
  /// are older, and a session that starts while this change commits either has the new number or ends. The same number
  /// revokes all links to calendars.
  ///
  /// The rows of the sessions follow later: see ``endFormer(atMost:in:)``.
  static func endEveryones(in change: Change) throws {
    // The clock makes the number higher than any that a restored backup has forgotten and that tokens still carry.
    try change.write(
      """
      UPDATE session_epoch
      SET number = greatest(number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
      """)
  }

  /// Marks sessions of earlier epochs as ended in their rows, and forgets their devices and their users' networks.
  ///
  /// - Returns: how many sessions it marked.
  static func endFormer(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.change { change in
      let rows = try await change.rows(
        """
        UPDATE sessions SET ended_at = clock_timestamp()
        WHERE id IN (
          SELECT id FROM sessions
          WHERE ended_at IS NULL AND epoch < (SELECT number FROM session_epoch)
          ORDER BY epoch
          LIMIT \(limit)
          FOR NO KEY UPDATE SKIP LOCKED
        )
        RETURNING id, user_id
        """)
      let ids: [ID] = try rows.map { try $0[0] }
      if !ids.isEmpty {
        try change.write(Device.forgetting(where: "session_id = ANY(\(ids))"))
        try change.write(KnownNetwork.forgetting(of: try rows.map { try $0[1] }))
      }
      return ids.count
    }
  }

  /// Deletes sessions that ended so long ago that none of their access tokens is valid, and sessions that are too old
  /// to be refreshed. Also ends sessions of earlier epochs.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    let ended = try await database.purge(
      "sessions", by: "ended_at", upTo: "now() - interval '2 days'", atMost: limit)
    // The ids contain their time, so the primary key finds the oldest ones.
    let tooOld = try await database.batch(
      """
      DELETE FROM sessions
      WHERE id IN (SELECT id FROM sessions ORDER BY id LIMIT \(limit))
        AND created_at < now() - make_interval(secs => \(Double(maximumAge)))
      """)[0].affected
    let networks = try await KnownNetwork.purge(atMost: limit, in: database)
    return try await ended + tooOld + networks + endFormer(atMost: limit, in: database)
  }
}

extension Session {
  /// For operators: ends all sessions of a user.
  ///
  /// - Returns: how many were open.
  /// - Throws: ``AppError/userNotFound``.
  public static func endAll(ofUserNamed username: String, in database: Database) async throws -> Int {
    try await database.change { change in
      let user: User.ID? = try await change.value("SELECT id FROM users WHERE username_key = ascii_folded(\(username))")
      guard let user, try await change.lock(user, for: .update).contains(user) else { throw AppError.userNotFound }
      return try await endAll(of: user, in: change)
    }
  }

  /// For operators: ends everyone's sessions. They have ended when `onEnd` is called; their rows and devices follow.
  ///
  /// - Returns: how many were open.
  public static func endEveryones(in database: Database, onEnd: () -> Void) async throws -> Int {
    try await database.change { try endEveryones(in: $0) }
    onEnd()
    var count = 0
    while case let ended = try await endFormer(atMost: 1000, in: database), ended > 0 { count += ended }
    return count
  }
}
