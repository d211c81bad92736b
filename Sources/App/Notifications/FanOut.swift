import Postgres

/// Turns queued notices into inbox items and deliveries. One step is one statement in its own transaction, without a
/// lease: a worker that is killed midway has changed nothing.
enum FanOut {
  /// Notices about one subject are fanned out one after the other.
  static let chain = Chain(columns: ["subject_id"])
  /// Recipients in one step.
  static let recipientsPerStep = 500
  /// Recipients of one subject's notices in one step, while notices about other subjects wait.
  static let recipientsPerSubject = 100
  /// Subjects in one step. If fewer wait, the step takes about as many notices: the oldest of each, and some behind it.
  static let subjectsPerStep = 100
  /// Deliveries that may wait for one device about one subject. Further notices reach the inbox only.
  static let deliveriesPerSubject = 500
  /// A notice that fails this many times on its own becomes a dead letter.
  private static let maximumFailures = 3
  /// A poll that expects nothing looks only at this many of the newest ids. While an older transaction stays open, rows
  /// that were deleted are still in the index, in front of the waiting ones.
  static let recentIDs = 2000
  /// A full poll looks at this many of the oldest waiting notices. If most of them are about the same few subjects,
  /// looking at all would cost more than the step itself. Newer notices about other subjects do not wait: full polls
  /// alternate with polls of the newest ids.
  static let oldestNotices = 1000
  /// How long a step waits for a user's stamps. Changes lock them only while they commit.
  private static let lockTimeout = "50ms"
  /// The same for a single notice, because many of them may follow in a row.
  private static let lockTimeoutAlone = "5ms"

  /// The outcome of a step.
  struct Progress: Sendable {
    var notices = 0
    /// Whether the step took as much as it may at once, so that more is likely to wait.
    var isAtLimit = false
  }

  /// Fans out the oldest notices of some subjects, and wakes the streams.
  ///
  /// - Parameter isFull: whether to search from the oldest notice on, instead of among the newest ids only.
  static func step(isFull: Bool = true, in database: Database) async throws -> Progress {
    do {
      let progress = try await steps(isFull: isFull, in: database)
      if progress.notices > 0 { database.notify(InboxItem.channel) }
      return progress
    } catch {
      // Some notices may have been fanned out before.
      database.notify(InboxItem.channel)
      throw error
    }
  }

  private static func steps(isFull: Bool, in database: Database) async throws -> Progress {
    do {
      return try await fanOut(
        atMost: subjectsPerStep, where: isFull ? isOld : isRecent, waiting: lockTimeout, in: database)
    } catch let error as PostgresError where isAboutOneNotice(error) {
      return try await stepOneByOne(in: database)
    }
  }

  /// The subquery is evaluated once.
  static let isOld: SQL = """
    q.id <= (
      SELECT max(id)
      FROM (SELECT id FROM notification_queue WHERE died_at IS NULL ORDER BY id LIMIT \(oldestNotices)) AS oldest
    )
    """

  /// The subquery is evaluated once. Without it, PostgreSQL would read the index from its start.
  static let isRecent: SQL = """
    q.id > (
      SELECT coalesce(
        pg_sequence_last_value(pg_get_serial_sequence('notification_queue', 'id')::regclass), 0) - \(recentIDs)
    )
    """

  /// Fans out notices one at a time after a step has failed, so that the bad one does not hold up the others.
  private static func stepOneByOne(in database: Database) async throws -> Progress {
    var progress = Progress(isAtLimit: true)
    var last: Int64 = 0
    // Continues beyond the first batch if nothing in it could be fanned out.
    while progress.notices == 0 {
      let rows = try await database.rows(
        """
        SELECT q.id FROM notification_queue AS q
        WHERE q.id > \(last) AND \(isOldest)
        ORDER BY q.id
        LIMIT \(subjectsPerStep)
        """)
      guard !rows.isEmpty else { break }
      for row in rows {
        last = try row[0]
        progress.notices += try await fanOutAlone(last, in: database)
      }
    }
    return progress
  }

  private static func fanOutAlone(_ id: Int64, in database: Database) async throws -> Int {
    do {
      return try await fanOut(atMost: 1, where: "q.id = \(id)", waiting: lockTimeoutAlone, in: database).notices
    } catch let error as PostgresError where isAboutOneNotice(error) {
      // A lock timeout or a deleted recipient says nothing about the notice.
      if error.sqlState == "57014" || !error.isUnavailable && !Stamps.isOfDeletedUser(error) {
        try await count(error, of: id, in: database)
      }
      return 0
    }
  }

  /// Whether other notices may succeed. They cannot if the database is unavailable.
  private static func isAboutOneNotice(_ error: PostgresError) -> Bool {
    error.kind == .server && (!error.isUnavailable || ["55P03", "57014"].contains(error.sqlState))
  }

  private static func count(_ error: PostgresError, of id: Int64, in database: Database) async throws {
    try await database.batch(
      """
      UPDATE notification_queue
      SET failures = failures + 1, last_error = left(\(error.description), 500),
        died_at = CASE WHEN failures + 1 >= \(maximumFailures) THEN now() END
      WHERE id = \(id)
      """)
  }

  private static func fanOut(
    atMost subjects: Int, where condition: SQL, waiting timeout: String, in database: Database
  ) async throws -> Progress {
    // The table fills and empties within seconds and has no useful statistics, so keep the planner to the indexes. Not
    // to one plan, although planning takes a tenth of a step: a plan made at a bad moment took six times as long.
    let results = try await database.batch(
      """
      SELECT set_config('lock_timeout', \(timeout), true), set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true)
      """,
      statement(atMost: subjects, where: condition))
    return try results[1].first.map { Progress(notices: try $0[0], isAtLimit: try $0[1]) } ?? Progress()
  }
}
