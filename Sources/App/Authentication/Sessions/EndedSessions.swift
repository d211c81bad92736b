import Foundation
import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// A copy, in each process, of the ended sessions whose access tokens may still be valid. Several times a second, it
/// reads the sessions that have ended since its last read, on its own connection. So requests need no query, and an
/// ended session stops everywhere within a second.
final class EndedSessions: Service {
  struct Copy {
    /// Two halves. An id leaves with its whole half, without a search, and never before its access tokens expire.
    var recent: Set<Session.ID> = []
    var earlier: Set<Session.ID> = []
    var turnedAt = ContinuousClock.now
    /// Sessions of earlier epochs have also ended.
    var epoch = 0
    var position: Position?
    /// When the last read began. The copy shows everything that was committed before.
    var readAt: ContinuousClock.Instant?
  }

  private static let interval = Duration.milliseconds(250)
  /// Seconds in addition to an access token's lifetime: clocks that are off in each direction, a refresh that converges
  /// with one 10 before it, and a slow commit.
  private static let margin = 2 * AccessTokens.skew + 60
  /// Where there are no snapshots: how far back in seconds each read looks. Once in this time, all are read, because a
  /// commit may take longer.
  private static let slowestCommit = 60.0
  /// The minimum time between two log lines about refused requests.
  private static let logInterval = Duration.seconds(10)

  let database: Database
  /// How long an ended session must be known.
  let seconds: Int
  private let isBehindPooler: Bool
  private let isPortable: Bool
  /// Rows per statement. More are read in pages.
  private let pageLength: Int
  let copy = Mutex(Copy())
  private let maximumAge: Duration
  private let logger: Logger
  private let refusals = Mutex((count: 0, loggedAt: ContinuousClock.Instant?.none))
  private let madeAt = ContinuousClock.now

  /// - Parameters:
  ///   - lifetime: of access tokens, in seconds.
  ///   - maximumAge: a copy that is older is not used.
  init(
    _ configuration: Database.Configuration, lifetime: Int, maximumAge: Duration, pageLength: Int = 20_000,
    logger: Logger
  ) throws {
    var configuration = configuration
    configuration.sharedConnections = 1
    // A busy server may need this long to accept a connection. With a shorter limit, each attempt would fail, and this
    // process would have no copy.
    configuration.connectTimeout = min(configuration.connectTimeout, .seconds(2))
    configuration.acquireTimeout = .milliseconds(500)
    configuration.statementTimeout = .milliseconds(500)
    database = try Database(configuration)
    seconds = lifetime + Self.margin
    isBehindPooler = configuration.isBehindPooler
    isPortable = configuration.isPortable
    self.pageLength = pageLength
    self.maximumAge = maximumAge
    self.logger = logger
  }

  /// Reads all ended sessions, if the database is available.
  func prepare() async {
    var isFailing = false
    await attempt(&isFailing)
  }

  /// Keeps the copy fresh until it is cancelled. Requests that finish during a shutdown still need it.
  func run() async {
    var isFailing = false
    while !Task.isCancelled {
      let next = ContinuousClock.now + Self.interval
      await attempt(&isFailing)
      // Ends early only by cancellation, which ends the loop.
      try? await Task.sleep(until: next)
    }
  }

  private func attempt(_ isFailing: inout Bool) async {
    do {
      try await read()
      if isFailing { logger.notice("the ended sessions can be read again") }
      isFailing = false
    } catch {
      if !isFailing, !Task.isCancelled {
        logger.warning("the ended sessions cannot be read", metadata: ["error": "\(error)"])
      }
      isFailing = true
    }
  }

  func close() {
    database.close()
  }

  /// - Throws: `session-ended`, or 503 while the copy is too old.
  func check(_ caller: AccessTokens.Caller) throws(AppError) {
    let (isEnded, readAt) = copy.withLock { copy in
      let isEnded =
        caller.epoch < copy.epoch || copy.recent.contains(caller.session) || copy.earlier.contains(caller.session)
      return (isEnded, copy.readAt)
    }
    guard isFresh(readAt) else {
      noteRefusal()
      throw .databaseUnavailable
    }
    if isEnded { throw .sessionEnded }
  }

  var isFresh: Bool { isFresh(copy.withLock { $0.readAt }) }

  /// The number of known ended sessions.
  var count: Int { copy.withLock { $0.recent.count + $0.earlier.count } }

  /// The time since the last read, or since the process started.
  var age: Duration { ContinuousClock.now - (copy.withLock { $0.readAt } ?? madeAt) }

  private func isFresh(_ readAt: ContinuousClock.Instant?) -> Bool {
    readAt.map { ContinuousClock.now - $0 <= maximumAge } ?? false
  }

  /// All requests fail alike. One log line every few seconds gives their number.
  private func noteRefusal() {
    let now = ContinuousClock.now
    let count = refusals.withLock { refusals -> Int? in
      refusals.count += 1
      if let loggedAt = refusals.loggedAt, now - loggedAt < Self.logInterval { return nil }
      defer { refusals = (0, now) }
      return refusals.count
    }
    guard let count else { return }
    logger.error(
      "refusing requests: the copy of the ended sessions is too old",
      metadata: ["requests": "\(count)", "age_seconds": "\(age / .seconds(1))"])
  }
}

extension EndedSessions {
  /// How far the copy has read: everything that this snapshot shows.
  ///
  /// This is not a time: a transaction may commit long after its `ended_at`, and no overlap bounds that, since a COMMIT
  /// may wait for a standby. A transaction that the snapshot does not show was either open then, and is named in it, or
  /// had not begun, and has a higher number. So the sessions that these two kinds of transactions ended are exactly the
  /// new ones.
  struct Position: Sendable {
    let snapshot: String
    /// Another server, or the same one after a crash, may reuse transaction numbers.
    let server: String
  }

  private struct Now {
    let position: Position
    let epoch: Int
    /// Only sessions that were used or ended after this time can have valid access tokens.
    let horizon: Timestamp
  }

  private static let leastID = Session.ID(rawValue: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))

  private static let statementTimedOut = "57014"
  /// Otherwise a page could scan the whole table while its statistics are from before most of the sessions ended.
  static let onlyByIndex: [SQL] = ["SET LOCAL enable_seqscan = off", "SET LOCAL enable_sort = off"]

  /// One caller at a time.
  func read() async throws {
    if try await readNews() { return }
    try await readAll()
    // Reading all of them may have taken longer than a copy stays valid.
    _ = try await readNews()
  }

  /// - Returns: false if everything must be read.
  private func readNews() async throws -> Bool {
    let start = ContinuousClock.now
    let (last, turnedAt) = copy.withLock { ($0.position, $0.turnedAt) }
    guard let position = last else { return false }
    // A slow commit is found by reading all.
    if isPortable, start - turnedAt > .seconds(Self.slowestCommit) { return false }
    let results: [Rows]
    do {
      results = try await database.pipeline(
        readingPosition,
        isPortable
          ? Self.ended(after: position.snapshot, atMost: pageLength + 1)
          : Self.ended(since: position.snapshot, atMost: pageLength + 1))
    } catch let error as PostgresError where error.sqlState == Self.statementTimedOut {
      // Too many sessions ended at once: even finding one page of them takes too long.
      return false
    }
    let now = try Self.now(results[0], isBehindPooler: isBehindPooler)
    guard now.position.server == position.server, results[1].count <= pageLength else { return false }
    let ids = try results[1].map { try $0[0] as Session.ID }
    copy.withLock { copy in
      if start - copy.turnedAt > .seconds(seconds) {
        (copy.earlier, copy.recent, copy.turnedAt) = (copy.recent, [], start)
      }
      for id in ids where !copy.earlier.contains(id) { copy.recent.insert(id) }
      (copy.epoch, copy.position, copy.readAt) = (now.epoch, now.position, start)
    }
    return true
  }

  private func readAll() async throws {
    let start = ContinuousClock.now
    let rows = try await database.rows(readingPosition)
    let now = try Self.now(rows, isBehindPooler: isBehindPooler)
    // After the snapshot, so that it misses nothing that the snapshot shows.
    let ids = try await database.transaction { transaction -> Set<Session.ID> in
      for setting in Self.onlyByIndex { try transaction.write(setting) }
      var ids: Set<Session.ID> = []
      var last = (use: now.horizon, id: Self.leastID)
      while true {
        let rows = try await transaction.rows(
          Self.ended(afterUse: last.use, id: last.id, atMost: pageLength))
        for row in rows {
          last = (try row[0], try row[1])
          ids.insert(last.id)
        }
        if rows.count < pageLength { return ids }
      }
    }
    copy.withLock { copy in
      copy = Copy(recent: ids, turnedAt: start, epoch: now.epoch, position: now.position, readAt: start)
    }
  }

  private static func now(_ rows: Rows, isBehindPooler: Bool) throws -> Now {
    guard let row = rows.first else { throw AppError.databaseUnavailable }
    let (server, process): (String, Int) = (try row["server"], try row["process"])
    // Behind a pooler, connections change all the time.
    let position = Position(
      snapshot: try row["snapshot"], server: isBehindPooler ? server : "\(server) \(process)")
    return Now(position: position, epoch: try row["epoch"], horizon: try row["horizon"])
  }

  private var readingPosition: SQL {
    isPortable ? Self.portablePosition(seconds: seconds) : Self.position(seconds: seconds)
  }

  /// The same without PostgreSQL's snapshots: a time before which all ends are committed.
  private static func portablePosition(seconds: Int) -> SQL {
    """
    SELECT number AS epoch, (now() - make_interval(secs => \(slowestCommit)))::text AS snapshot, '' AS server,
      0::bigint AS process, now() - make_interval(secs => \(Double(seconds))) AS horizon
    FROM session_epoch
    """
  }

  /// Sessions that ended after a time. Most were in the last result too.
  private static func ended(after time: String, atMost limit: Int) -> SQL {
    """
    SELECT id FROM sessions
    WHERE ended_at > \(time)::timestamptz AND ended_xid IS NOT NULL
    ORDER BY ended_at
    LIMIT \(limit)
    """
  }

  static func position(seconds: Int) -> SQL {
    """
    SELECT number AS epoch, pg_current_snapshot()::text AS snapshot, pg_postmaster_start_time()::text AS server,
      pg_backend_pid()::bigint AS process, now() - make_interval(secs => \(Double(seconds))) AS horizon
    FROM session_epoch
    """
  }

  /// The sessions that an earlier snapshot did not show as ended. Each span of transactions is an index range, whatever
  /// the planner assumes about the table. The upper bound excludes numbers from a restored backup, which belong to
  /// another server.
  static func ended(since snapshot: String, atMost limit: Int) -> SQL {
    """
    SELECT ended.id
    FROM (
      SELECT xid AS first, xid AS last FROM pg_snapshot_xip(\(snapshot)::pg_snapshot) AS xid
      UNION ALL
      SELECT pg_snapshot_xmax(\(snapshot)::pg_snapshot), pg_snapshot_xmax(pg_current_snapshot())
    ) AS span
    CROSS JOIN LATERAL (
      SELECT id FROM sessions
      WHERE ended_xid BETWEEN span.first AND span.last
      ORDER BY ended_xid, id
      LIMIT \(limit)
    ) AS ended
    LIMIT \(limit)
    """
  }

  static func ended(afterUse use: Timestamp, id: Session.ID, atMost limit: Int) -> SQL {
    """
    SELECT greatest(rotated_at, ended_at), id FROM sessions
    WHERE ended_at IS NOT NULL AND ended_xid IS NOT NULL AND (greatest(rotated_at, ended_at), id) > (\(use), \(id))
    ORDER BY greatest(rotated_at, ended_at), id
    LIMIT \(limit)
    """
  }
}
