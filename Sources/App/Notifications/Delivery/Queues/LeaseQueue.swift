import Logging
import Postgres

/// A table whose rows workers claim, send and delete. Its columns `id`, `due_at`, `attempts`, `deaths`, `last_error`,
/// `worker_id`, `leased_until`, `lease` and `died_at` are the same for all such tables.
struct LeaseQueue: Sendable {
  let table: String
  /// Rows of a chain are sent one after the other: only the oldest can be claimed, together with a run of those behind
  /// it. If nil, each row stands alone.
  let chain: Chain?
  /// The columns that a claim reads for the send, as `q.…`. See ``LeasedRow/fields``.
  let columns: SQL
  /// The places of the row's type and of its user in ``columns``, for log lines.
  var typePlace: Int?
  var userPlace: Int?

  /// Seconds until a claim expires, unless it is renewed.
  static let leaseSeconds = 4.0
  /// A worker without a heartbeat for this many seconds is dead. Less than the lease: when a lease expires, it is known
  /// whether its worker died.
  static let heartbeatSeconds = 3.0
  /// A row that was in flight at this many worker deaths is a suspect: a worker sends one of them at a time. If it kills
  /// the worker again, it does not take the others with it; another row that kills the worker meanwhile does take it.
  /// After one death, a row is not suspect yet: rows that take long to send are in flight most of the time.
  static let suspectDeaths: SQL = "2"
  /// A row that was in flight at this many worker deaths becomes a dead letter.
  static let maximumDeaths: Int32 = 3
  /// Rows behind the oldest one that are claimed with it.
  static let runLength = 50

  /// Keeps the planner to the indexes. Its statistics may be a minute old, and a table that had a few rows then may
  /// have a hundred thousand now.
  static let byIndex: SQL =
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"

  var name: SQL { "\(unescaped: table)" }

  /// How log lines name a row.
  func facts(about row: LeasedRow) -> Logger.Metadata {
    var facts: Logger.Metadata = ["table": "\(table)", "row": "\(row.id)"]
    if let typePlace, let type: String = try? row.fields[typePlace] { facts["type"] = "\(type)" }
    // Null for a visitor's.
    if let userPlace, let user: User.ID = try? row.fields[userPlace] { facts["user"] = "\(user)" }
    return facts
  }
}

extension LeaseQueue {
  /// The rows whose leases the worker still has, as `q`, for a FROM clause.
  func rows(of leases: [LeasedRow.Lease]) -> SQL {
    """
    unnest(\(leases.map(\.id)), \(leases.map(\.token))) AS mine (id, lease)
    JOIN \(name) AS q ON q.id = mine.id AND q.lease = mine.lease
    """
  }

  /// Renews the leases of claimed rows. Skips rows that another worker has or that a change is deleting: if a renewal
  /// waited for one of them, all leases could expire.
  func renewing(_ leases: [LeasedRow.Lease]) -> SQL {
    """
    WITH leased AS MATERIALIZED (SELECT q.id FROM \(rows(of: leases)) FOR UPDATE OF q SKIP LOCKED)
    UPDATE \(name) AS q SET leased_until = now() + make_interval(secs => \(Self.leaseSeconds))
    FROM leased
    WHERE q.id = leased.id
    """
  }
}
