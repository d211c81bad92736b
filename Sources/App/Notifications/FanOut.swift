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
  /// Subjects in one step. If fewer wait, the step takes up to twice as many notices: the oldest of each, and some behind
  /// it.
  static let subjectsPerStep = 100
  /// Deliveries that may wait for one device about one subject. Further notices reach the inbox only.
  static let deliveriesPerSubject = 500
  /// A notice that fails this many times on its own becomes a dead letter.
  private static let maximumFailures = 3
  /// A poll that expects nothing looks only at this many of the newest ids. While an older transaction stays open, rows
  /// that were deleted are still in the index, in front of the waiting ones.
  static let recentIDs = 2000
  /// A step reads this many waiting notices. If most of them are about the same few subjects, reading them all would
  /// cost more than the step itself.
  static let window = 1000
  /// How long a step waits for a user's stamps. Changes lock them only while they commit.
  private static let lockTimeout = "50ms"
  /// The same for a single notice, because many of them may follow in a row.
  private static let lockTimeoutAlone = "5ms"

  /// Which of the waiting notices a step reads.
  enum Scope: Sendable, Equatable {
    /// Those with the newest ids.
    case recent
    /// A window that begins behind an id.
    case after(Int64)
    /// A single one.
    case only(Int64)

    static let oldest = Scope.after(0)
  }

  /// The outcome of a step.
  struct Progress: Sendable {
    var notices = 0
    /// Whether the step left notices of its scope that it could have taken.
    var isAtLimit = false
    /// The end of the window; nil if no notices wait behind it.
    var end: Int64?
  }

  /// Fans out the oldest notices of some subjects, and wakes the streams.
  static func step(_ scope: Scope = .oldest, in database: Database) async throws -> Progress {
    do {
      let progress = try await steps(scope, in: database)
      if progress.notices > 0 { database.notify(InboxItem.channel) }
      return progress
    } catch {
      // Some notices may have been fanned out before.
      database.notify(InboxItem.channel)
      throw error
    }
  }

  /// Fans out all notices that can be fanned out now.
  static func drain(_ database: Database) async throws {
    var start: Int64 = 0
    var hasMoved = false
    while true {
      let progress = try await step(.after(start), in: database)
      if progress.notices > 0 {
        hasMoved = true
      } else if let end = progress.end {
        start = end
      } else if hasMoved {
        (start, hasMoved) = (0, false)
      } else {
        return
      }
    }
  }

  private static func steps(_ scope: Scope, in database: Database) async throws -> Progress {
    do {
      return try await fanOut(scope, waiting: lockTimeout, in: database)
    } catch let error as PostgresError where isAboutOneNotice(error) {
      return try await stepOneByOne(scope, in: database)
    }
  }

  /// Fans out notices one at a time after a step has failed, so that the bad one does not hold up the others.
  private static func stepOneByOne(_ scope: Scope, in database: Database) async throws -> Progress {
    var progress = Progress()
    var last: Int64 = if case .after(let start) = scope { start } else { 0 }
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
      progress.end = rows.count < subjectsPerStep ? nil : last
    }
    progress.isAtLimit = progress.notices > 0
    return progress
  }

  private static func fanOutAlone(_ id: Int64, in database: Database) async throws -> Int {
    do {
      return try await fanOut(.only(id), atMost: 1, waiting: lockTimeoutAlone, in: database).notices
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
    _ scope: Scope, atMost subjects: Int = subjectsPerStep, waiting timeout: String, in database: Database
  ) async throws -> Progress {
    // The table fills and empties within seconds and has no useful statistics, so keep the planner to the indexes. Not
    // to one plan, although planning takes a tenth of a step: a plan made at a bad moment took six times as long.
    let results = try await database.batch(
      """
      SELECT set_config('lock_timeout', \(timeout), true), set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true)
      """,
      statement(scope, atMost: subjects))
    return try results[1].first.map { Progress(notices: try $0[0], isAtLimit: try $0[1], end: try $0[2]) } ?? Progress()
  }
}
