import Foundation
import Postgres

/// A signed-in device. One row for its whole lifetime, rotated at each refresh.
public struct Session: Sendable {
  public typealias ID = Identifier<Session>

  let id: ID
  let device: String?
  let createdAt: Timestamp
  let lastUsedAt: Timestamp

  /// A duplicate of a refresh within this many seconds gets the same result, so parallel requests converge.
  private static let convergence = 10
  private static let maximumIdle = 60 * 86_400
  static let maximumAge = 365 * 86_400
  /// Per user.
  static let maximumCount = 50

  /// The refresh token of a client, and the contents of its access tokens.
  struct Tokens: Sendable {
    let user: User.ID
    let refresh: RefreshToken
    /// The epoch in which the session started: see ``Session/endEveryones(in:)``.
    let epoch: Int
  }

  /// The condition on `sessions` for an open session.
  static let isOpen: SQL = isOpen("sessions")

  /// The same condition for a row under an alias.
  ///
  /// Callers look sessions up by id. With a plain `ended_at IS NULL`, PostgreSQL could use the index of open sessions
  /// instead, and in a database without statistics it would read them all.
  static func isOpen(_ alias: String) -> SQL {
    """
    num_nonnulls(\(unescaped: alias).ended_at) = 0
      AND \(unescaped: alias).epoch >= (SELECT number FROM session_epoch WHERE is_only)
    """
  }

  /// A condition on a row under an alias: whether the session is open and not too old to be refreshed.
  static func isAlive(_ alias: String) -> SQL {
    """
    \(isOpen(alias))
      AND \(unescaped: alias).rotated_at > now() - make_interval(secs => \(Double(maximumIdle)))
      AND \(unescaped: alias).created_at > now() - make_interval(secs => \(Double(maximumAge)))
    """
  }

  /// Starts a session for a user, whom the caller has locked for share. If the user then has too many sessions, the one
  /// that has been idle the longest ends.
  ///
  /// - Parameter network: the client's: see ``KnownNetwork``.
  static func start(
    for user: User.ID, device: String?, from network: Data?, keys: SigningKeys, now: Timestamp? = nil, in change: Change
  ) async throws -> Tokens {
    let token = RefreshToken(session: .new(), counter: 0, branch: 0, kid: keys.signing.kid)
    try User.takeTurn(at: .sessions, by: user, in: change)
    let results = try await change.pipeline(
      """
      INSERT INTO sessions (id, user_id, device, rotated_at, kid, created_at, epoch)
      SELECT \(token.session), \(user), \(device), now, \(token.kid), now, number
      FROM coalesce(\(now), clock_timestamp()) AS now CROSS JOIN session_epoch
      RETURNING epoch
      """,
      """
      UPDATE sessions AS s SET ended_at = coalesce(\(now), clock_timestamp())
      FROM (
        SELECT id, rotated_at FROM sessions
        WHERE user_id = \(user) AND ended_at IS NULL AND id <> \(token.session)
        ORDER BY rotated_at DESC, id DESC
        OFFSET \(maximumCount - 1)
      ) AS idle
      -- One that is refreshed at this moment is not idle.
      WHERE s.id = idle.id AND s.rotated_at = idle.rotated_at AND s.ended_at IS NULL
      RETURNING s.id
      """)
    guard let row = results[0].first else { throw AppError.sessionEnded }
    if let network { try change.write(KnownNetwork.noting(network, of: user)) }
    let surplus: [ID] = try results[1].map { try $0[0] }
    if !surplus.isEmpty { try await change.rows(Device.forgetting(where: "session_id = ANY(\(surplus))")) }
    return Tokens(user: user, refresh: token, epoch: try row[0])
  }

  enum Rotation: Sendable {
    case rotated(Tokens)
    /// Refused, and the session has ended. This is recorded even though the caller gets an error.
    case theft
    case ended
  }

  /// Exchanges a refresh token for its successor.
  ///
  /// - The current token leads to the next one: counter + 1, branch 0.
  /// - The current token's parent means that the response with the current token was lost. Within some seconds, the
  ///   same token is issued again. After that, a new branch supersedes the token that was never used.
  /// - An older token, or one on a superseded branch, was copied: the session ends.
  /// - A token ahead of the row is also genuine: the database was restored from a backup.
  static func rotate(
    _ shown: RefreshToken, from network: Data?, keys: SigningKeys, now: Timestamp? = nil, in change: Change
  ) async throws -> Rotation {
    // The database's clock: processes' clocks may differ by more than the few seconds that matter here.
    let row = try await change.first(
      """
      SELECT user_id, counter, branch, parent_branch, rotated_at, kid, created_at, epoch, \(isOpen) AS is_open,
        coalesce(\(now), clock_timestamp()) AS now, \(KnownNetwork.isNoted(network, of: "sessions.user_id")) AS is_noted
      FROM sessions WHERE id = \(shown.session)
      FOR NO KEY UPDATE
      """)
    guard let row else { return .ended }
    // The sessions of a deleted account remain, as ended ones.
    let owner: User.ID? = try row["user_id"]
    let rotatedAt: Timestamp = try row["rotated_at"]
    let createdAt: Timestamp = try row["created_at"]
    let (isOpen, epoch): (Bool, Int) = (try row["is_open"], try row["epoch"])
    let now: Timestamp = try row["now"]
    guard let user = owner, isOpen, now < rotatedAt.adding(seconds: maximumIdle),
      now < createdAt.adding(seconds: maximumAge)
    else { return .ended }

    let current = RefreshToken(
      session: shown.session, counter: try row["counter"], branch: try row["branch"], kid: try row["kid"])
    // A damaged row has no token to issue.
    guard RefreshToken.counters.contains(current.counter), RefreshToken.branches.contains(current.branch) else {
      return .ended
    }
    let parentBranch: Int = try row["parent_branch"]
    let next: RefreshToken
    let nextParentBranch: Int
    if (shown.counter, shown.branch) >= (current.counter, current.branch) {
      next = RefreshToken(session: shown.session, counter: shown.counter + 1, branch: 0, kid: keys.signing.kid)
      nextParentBranch = shown.branch
    } else if (shown.counter, shown.branch) == (current.counter - 1, parentBranch) {
      if now < rotatedAt.adding(seconds: convergence) {
        return .rotated(Tokens(user: user, refresh: current, epoch: epoch))
      }
      next = RefreshToken(
        session: shown.session, counter: current.counter, branch: current.branch + 1, kid: keys.signing.kid)
      nextParentBranch = parentBranch
    } else {
      _ = try await end(shown.session, of: user, by: nil, now: now, in: change)
      change.notify(user, about: .sessionRevoked(shown.session))
      return .theft
    }
    try change.write(
      """
      UPDATE sessions
      SET counter = \(next.counter), branch = \(Int32(next.branch)), parent_branch = \(Int32(nextParentBranch)),
        rotated_at = \(now), kid = \(next.kid)
      WHERE id = \(shown.session)
      """)
    if let network, try !row["is_noted"] { try change.write(KnownNetwork.noting(network, of: user)) }
    return .rotated(Tokens(user: user, refresh: next, epoch: epoch))
  }

  /// The sessions that can still be refreshed, newest first.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Session> {
    try await List<Session>.read(
      page: page,
      query: Keyset(
        list: .sessions, columns: "s.id, s.device, s.created_at, s.rotated_at",
        source: """
          sessions AS s
          WHERE s.user_id = \(user) AND \(isAlive("s"))
          """,
        time: "s.created_at", id: "s.id", order: .descending),
      in: database
    ) { row in
      Session(
        id: try row["id"], device: try row["device"], createdAt: try row["created_at"],
        lastUsedAt: try row["rotated_at"])
    }
  }
}

extension AppError {
  static let sessionNotFound = AppError(
    .notFound, "session-not-found", "There is no such session, or it has already ended.")
  static let sessionEnded = AppError(.unauthorized, "session-ended", "This session has ended: log in again.")
}

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
  private static func endFormer(atMost limit: Int, in database: Database) async throws -> Int {
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
      let user = try await User.named(username, in: change)
      guard try await change.lock(user, for: .update).contains(user) else { throw AppError.userNotFound }
      return try await endAll(of: user, in: change)
    }
  }

  /// The number of sessions that can be refreshed, by the id of the key that signs their refresh tokens. Reads all
  /// sessions.
  public static func countByKey(at url: String) async throws -> [String: Int] {
    try await ScriptConnection.run(url, applicationName: "muster sessions") { connection in
      let rows = try connection.rows("SELECT kid, count(*) FROM sessions AS s WHERE \(isAlive("s")) GROUP BY kid")
      return Dictionary(uniqueKeysWithValues: try rows.map { (try $0[0], try $0[1]) })
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
