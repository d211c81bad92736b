import Foundation
import Postgres
import Synchronization

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
    guard let position = copy.withLock({ $0.position }) else { return false }
    let results: [Rows]
    do {
      results = try await database.pipeline(
        Self.position(seconds: seconds), Self.ended(since: position.snapshot, atMost: pageLength + 1))
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
    let rows = try await database.rows(Self.position(seconds: seconds))
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
