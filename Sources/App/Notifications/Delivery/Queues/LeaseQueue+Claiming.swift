import Foundation
import Postgres

/// A row that a worker has claimed.
struct LeasedRow: Sendable {
  struct Lease: Sendable {
    /// The row's.
    let id: Int64
    /// The fencing token: an acknowledgement must still find it.
    let token: UUID
  }

  let lease: Lease
  let attempts: Int
  /// Nil if it is out of range.
  let createdAt: Timestamp?
  /// The columns of ``LeaseQueue/columns``, starting at index 0.
  let fields: Fields

  struct Fields: Sendable {
    let row: Row

    subscript<Value: SQLValue>(place: Int) -> Value {
      get throws { try row[place + LeaseQueue.ownColumns] }
    }
  }

  var id: Int64 { lease.id }
}

extension LeaseQueue {
  /// The rows that a claim is for.
  enum Scope: Sendable {
    /// All that are due.
    case all
    /// Only those that became due in the last few seconds. While an older transaction is open, deleted rows stay in the
    /// index, in front of those that are due. A claim that reads past them ten times a second does nothing else. Rows
    /// that commit late, or that a dead worker had leased, are found by the next full claim.
    case recent
    /// Suspects: see ``suspectDeaths``.
    case suspect

    var isFull: Bool { if case .recent = self { false } else { true } }
    fileprivate var takesRuns: Bool { if case .suspect = self { false } else { true } }
  }

  struct Claim: Sendable {
    /// Rows that are sent one after the other.
    var runs: [[LeasedRow]] = []
    /// Rows that were in flight when a worker died. They are not claimed now.
    var orphans = 0
    /// Those of them that are dead letters now.
    var dead: [LeasedRow] = []
    /// Whether a suspect is due.
    var hasSuspects = false
  }

  /// Claims due rows for a worker.
  ///
  /// - Parameters:
  ///   - limit: the maximum number of oldest rows, and of rows behind them.
  ///   - lease: the claim's fencing token.
  func claim(
    _ scope: Scope, atMost limit: Int, for worker: UUID, lease: UUID, in database: Database
  ) async throws -> Claim {
    let claiming = claiming(scope, atMost: limit, for: worker, lease: lease)
    let results =
      switch scope {
      case .all: try await database.batch(Self.byIndex, claiming, lookingForSuspects(for: worker))
      case .recent, .suspect: try await database.batch(Self.byIndex, claiming)
      }
    var claim = Claim()
    if results.count > 2, let found = results[2].first { claim.hasSuspects = try found[0] }
    var places: [Int64: Int] = [:]
    // In id order, so that each oldest row comes before those behind it.
    let rows = try results[1].map { row -> (id: Int64, row: Row) in (try row[1], row) }.sorted { $0.id < $1.id }
    for (id, row) in rows {
      let head: Int64 = try row[0]
      let leased = LeasedRow(
        lease: LeasedRow.Lease(id: id, token: lease), attempts: try row[4], createdAt: try? row[5],
        fields: LeasedRow.Fields(row: row))
      guard try !(row[2] as Bool) else {
        if id == head { claim.orphans += 1 }
        if try row[3] as Bool { claim.dead.append(leased) }
        continue
      }
      if let place = places[head] {
        claim.runs[place].append(leased)
      } else {
        places[head] = claim.runs.count
        claim.runs.append([leased])
      }
    }
    return claim
  }

  /// The number of columns in a claim's result before those of the queue.
  static let ownColumns = 6

  func claiming(_ scope: Scope, atMost limit: Int, for worker: UUID, lease: UUID) -> SQL {
    let (since, suspicion): (SQL, SQL) =
      switch scope {
      case .all: ("", "d.deaths < \(Self.suspectDeaths)")
      case .recent: ("AND d.due_at > now() - interval '5 seconds'", "d.deaths < \(Self.suspectDeaths)")
      case .suspect: ("", "d.deaths >= \(Self.suspectDeaths)")
      }
    let (behind, union): (SQL, SQL) =
      if let chain, scope.takesRuns {
        ("\(run(of: chain, atMost: limit, for: worker)),", "UNION ALL SELECT head, id, is_orphan FROM following")
      } else {
        ("", "")
      }
    let key: SQL = "\(unescaped: (chain?.columns ?? []).map { ", d.\($0)" }.joined())"
    // OFFSET 0 keeps each search for an older row an index lookup.
    let isOldest: SQL =
      chain.map { chain -> SQL in
        """
        AND NOT EXISTS (
          SELECT FROM \(name) AS older
          WHERE \(chain.isAhead("older", of: "d")) AND older.died_at IS NULL
          OFFSET 0
        )
        """
      } ?? ""
    // One statement has one snapshot: it sees all rows between the oldest and those behind it.
    return """
      WITH due AS MATERIALIZED (
        SELECT d.id\(key), d.leased_until IS NOT NULL AND NOT \(Self.isAlive("d")) AS is_orphan
        FROM \(name) AS d
        WHERE d.died_at IS NULL AND d.due_at <= now() \(since) AND \(suspicion) AND \(Self.isFree("d", for: worker))
          \(isOldest)
        ORDER BY d.due_at, d.id
        LIMIT \(limit)
        FOR UPDATE OF d SKIP LOCKED
      ),
      \(behind)
      -- MATERIALIZED: another worker may change a row between the snapshot and the lock. PostgreSQL then checks again
      -- whether the row is in `mine`. If this were a UNION ALL in the statement, it would not find the row, and lease
      -- those behind it without it.
      mine AS MATERIALIZED (
        SELECT id AS head, id, is_orphan FROM due
        \(union)
      )
      UPDATE \(name) AS q
      SET lease = CASE WHEN NOT mine.is_orphan THEN \(lease) END,
        worker_id = CASE WHEN NOT mine.is_orphan THEN \(worker) ELSE q.worker_id END,
        leased_until = CASE WHEN NOT mine.is_orphan THEN now() + make_interval(secs => \(Self.leaseSeconds)) END,
        deaths = CASE WHEN mine.is_orphan AND mine.id = mine.head THEN least(q.deaths, 100) + 1 ELSE q.deaths END,
        died_at = CASE
          WHEN mine.is_orphan AND mine.id = mine.head AND q.deaths >= \(Self.maximumDeaths - 1) THEN now()
        END,
        last_error = CASE
          WHEN mine.is_orphan AND mine.id = mine.head THEN 'a worker died while this was in flight' ELSE q.last_error
        END
      FROM mine
      WHERE q.id = mine.id
      RETURNING mine.head, q.id, mine.is_orphan, q.died_at IS NOT NULL, q.attempts, q.created_at, \(columns)
      """
  }

  /// The rows behind each oldest one, up to the first that another worker has: that worker may be deleting the row, but
  /// the delete may still fail.
  private func run(of chain: Chain, atMost limit: Int, for worker: UUID) -> SQL {
    """
    behind AS MATERIALIZED (
      SELECT due.id AS head, due.is_orphan, next.id, next.nth
      FROM due
      CROSS JOIN LATERAL (
        SELECT n.id, row_number() OVER (ORDER BY n.id) AS nth
        FROM (
          SELECT b.id FROM \(name) AS b
          WHERE \(chain.range("b", behind: "due")) AND b.died_at IS NULL
          ORDER BY \(chain.order("b"))
          LIMIT \(Self.runLength)
        ) AS n
      ) AS next
      LIMIT \(limit)
    ),
    -- One key at a time. With IS NULL, the planner may read a whole partial index for each row if the table was small.
    locked AS MATERIALIZED (
      SELECT behind.head, behind.is_orphan, behind.id, behind.nth
      FROM behind
      CROSS JOIN LATERAL (
        SELECT FROM \(name) AS b
        WHERE b.id = behind.id AND num_nulls(b.died_at) = 1 AND b.due_at <= now()
          AND b.deaths < \(Self.suspectDeaths)
          AND \(Self.isFree("b", for: worker))
        FOR UPDATE OF b SKIP LOCKED
      ) AS free
    ),
    following AS (
      SELECT head, id, is_orphan
      FROM (
        SELECT head, id, is_orphan, nth, row_number() OVER (PARTITION BY head ORDER BY id) AS got FROM locked
      ) AS each
      WHERE nth = got
    )
    """
  }

  private func lookingForSuspects(for worker: UUID) -> SQL {
    """
    SELECT EXISTS (
      SELECT FROM \(name) AS d
      WHERE d.deaths >= \(Self.suspectDeaths) AND d.died_at IS NULL AND d.due_at <= now() AND \(Self.isFree("d", for: worker))
    )
    """
  }

  /// Not leased; or the lease has expired, and it is known whether its worker died.
  private static func isFree(_ row: String, for worker: UUID) -> SQL {
    """
    (\(unescaped: row).leased_until IS NULL
      OR \(unescaped: row).leased_until <= now() AND (\(isAlive(row)) OR (SELECT \(Heartbeat.isSteady(worker)))))
    """
  }

  private static func isAlive(_ row: String) -> SQL {
    """
    EXISTS (
      SELECT FROM workers AS w
      WHERE w.id = \(unescaped: row).worker_id AND w.heartbeat_at > now() - make_interval(secs => \(heartbeatSeconds))
    )
    """
  }
}
