import Postgres

/// A signed-in device. One row for its whole life, rotated at each refresh.
public struct Session: Sendable {
  public typealias ID = Identifier<Session>

  let id: ID
  let device: String?
  let createdAt: Timestamp
  let lastUsedAt: Timestamp

  /// A duplicate of a refresh that comes within this many seconds gets the same answer: parallel requests converge.
  private static let convergence = 10
  private static let maximumIdle = 60 * 86_400
  private static let maximumAge = 365 * 86_400

  /// Starts a session for a user.
  static func start(
    for user: User.ID, device: String?, keys: SigningKeys, now: Timestamp? = nil, in change: Change
  ) async throws -> RefreshToken {
    let token = RefreshToken(session: .new(), counter: 0, branch: 0, kid: keys.signing.kid)
    try await change.rows(
      """
      INSERT INTO sessions (id, user_id, device, rotated_at, kid, created_at)
      SELECT \(token.session), \(user), \(device), now, \(token.kid), now
      FROM coalesce(\(now), clock_timestamp()) AS now
      """)
    return token
  }

  enum Rotation: Sendable {
    case rotated(User.ID, RefreshToken)
    /// Refused, and the session has ended: recorded even though the caller gets an error.
    case theft
    case ended
  }

  /// Exchanges a refresh token for its successor.
  ///
  /// - The current token makes the next: counter + 1, branch 0.
  /// - The current token's parent means that the answer with the current one was lost. Within some seconds the same
  ///   token is given again; later a new branch, which supersedes the one that was never used.
  /// - Anything older, or on a superseded branch, was copied: the session ends.
  /// - One that is ahead of the row is genuine too: the database was restored from a backup.
  static func rotate(
    _ shown: RefreshToken, keys: SigningKeys, now: Timestamp? = nil, in change: Change
  ) async throws -> Rotation {
    // The database's clock: processes' clocks may disagree by more than the seconds that count.
    let row = try await change.first(
      """
      SELECT user_id, counter, branch, parent_branch, rotated_at, kid, created_at, ended_at,
        coalesce(\(now), clock_timestamp()) AS now
      FROM sessions WHERE id = \(shown.session)
      FOR NO KEY UPDATE
      """)
    guard let row else { return .ended }
    // A session outlives its account, as an ended one.
    let owner: User.ID? = try row["user_id"]
    let rotatedAt: Timestamp = try row["rotated_at"]
    let createdAt: Timestamp = try row["created_at"]
    let endedAt: Timestamp? = try row["ended_at"]
    let now: Timestamp = try row["now"]
    guard let user = owner, endedAt == nil, now < rotatedAt.adding(seconds: maximumIdle),
      now < createdAt.adding(seconds: maximumAge)
    else { return .ended }

    let current = RefreshToken(
      session: shown.session, counter: try row["counter"], branch: try row["branch"], kid: try row["kid"])
    let parentBranch: Int = try row["parent_branch"]
    let next: RefreshToken
    let nextParentBranch: Int
    if (shown.counter, shown.branch) >= (current.counter, current.branch) {
      next = RefreshToken(session: shown.session, counter: shown.counter + 1, branch: 0, kid: keys.signing.kid)
      nextParentBranch = shown.branch
    } else if (shown.counter, shown.branch) == (current.counter - 1, parentBranch) {
      if now < rotatedAt.adding(seconds: convergence) { return .rotated(user, current) }
      next = RefreshToken(
        session: shown.session, counter: current.counter, branch: current.branch + 1, kid: keys.signing.kid)
      nextParentBranch = parentBranch
    } else {
      _ = try await end(shown.session, of: user, now: now, in: change)
      change.notify(user, about: .sessionRevoked(shown.session))
      return .theft
    }
    try await change.rows(
      """
      UPDATE sessions
      SET counter = \(next.counter), branch = \(Int32(next.branch)), parent_branch = \(Int32(nextParentBranch)),
        rotated_at = \(now), kid = \(next.kid)
      WHERE id = \(shown.session)
      """)
    return .rotated(user, next)
  }

  /// Ends a session: it cannot be refreshed any more, its access tokens stop within a second, and its devices are told
  /// nothing any more. See ``EndedSessions``.
  ///
  /// - Returns: false if the user has no such session that could be refreshed.
  static func end(_ id: ID, of user: User.ID, now: Timestamp? = nil, in change: Change) async throws -> Bool {
    try await change.pipeline(
      """
      UPDATE sessions SET ended_at = coalesce(\(now), clock_timestamp())
      WHERE id = \(id) AND user_id = \(user) AND ended_at IS NULL
      """,
      // After the session: whoever registers one holds it, and is waited for.
      Device.forgetting(where: "session_id = \(id) AND user_id = \(user)")
    )[0].affected == 1
  }

  /// Makes sure that a session goes on until the change ends, whose request may have been let in long before. The user's
  /// row must be locked, as it is by whoever ends all of their sessions.
  ///
  /// - Throws: ``AppError/sessionEnded``.
  static func check(_ id: ID, in change: Change) async throws {
    let isLive = try await change.first("SELECT 1 FROM sessions WHERE id = \(id) AND ended_at IS NULL FOR SHARE") != nil
    guard isLive else { throw AppError.sessionEnded }
  }

  /// Ends all sessions of a user, or all but one, and forgets their devices. The user's row must be locked: no session
  /// starts meanwhile.
  static func endAll(of user: User.ID, except kept: ID? = nil, in change: Change) async throws {
    try await change.pipeline(
      """
      UPDATE sessions SET ended_at = clock_timestamp()
      WHERE user_id = \(user) AND id IS DISTINCT FROM \(kept) AND ended_at IS NULL
      """,
      Device.forgetting(where: "user_id = \(user) AND session_id IS DISTINCT FROM \(kept)"))
  }

  /// Forgets sessions that ended long enough ago that none of their access tokens is valid, and those too old to be
  /// refreshed.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    let rows = try await database.batch(
      """
      DELETE FROM sessions
      WHERE id IN (
        SELECT id FROM sessions WHERE ended_at < now() - interval '2 days' ORDER BY ended_at LIMIT \(limit)
      )
      """,
      // The ids tell their age, so that the oldest are found by the primary key.
      """
      DELETE FROM sessions
      WHERE id IN (SELECT id FROM sessions ORDER BY id LIMIT \(limit))
        AND created_at < now() - make_interval(secs => \(Double(maximumAge)))
      """)
    return rows.map(\.affected).reduce(0, +)
  }

  /// The sessions that can still be refreshed, the newest first.
  static func list(of user: User.ID, page: Page, in database: some Querying) async throws -> List<Session> {
    try await List<Session>.read(
      page: page,
      query: Keyset(
        list: .sessions, columns: "s.id, s.device, s.created_at, s.rotated_at",
        source: """
          sessions AS s
          WHERE s.user_id = \(user) AND s.ended_at IS NULL
            AND s.rotated_at > now() - make_interval(secs => \(Double(maximumIdle)))
            AND s.created_at > now() - make_interval(secs => \(Double(maximumAge)))
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
  static let sessionNotFound = AppError(.notFound, "session-not-found", "You have no such session.")
  static let sessionEnded = AppError(.unauthorized, "session-ended", "This session has ended: log in again.")
}
