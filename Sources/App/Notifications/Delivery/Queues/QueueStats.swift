import Postgres

/// The number of rows in the queues at one moment, including dead letters.
public struct QueueStats: Sendable, Encodable {
  public struct Counts: Sendable, Encodable {
    /// To be sent now.
    public var due = 0
    /// Waiting for a later attempt, or behind a row that is.
    public var waiting = 0
    /// Leased by a worker.
    public var inFlight = 0
    /// Dead letters.
    public var dead = 0
  }

  /// Tables with more rows are estimated from a sample.
  static let countedRows = 10_000
  /// Of a larger table, the oldest rows, whose channels are all seen, and a sample of the others.
  private static let oldestRows = 100_000
  /// The assumed number of rows per page in a table that was never analyzed.
  private static let rowsPerPage = 20

  public private(set) var total = Counts()
  public private(set) var types: [String: Counts] = [:]
  /// The seconds since the oldest due row became due; nil if none is due.
  public private(set) var oldestDueSeconds: Double?
  /// By channel, the age of the oldest row that is neither delivered nor a dead letter, in seconds: also of one that
  /// waits for a later attempt. A channel without such rows is missing.
  public private(set) var oldestUndeliveredSeconds: [String: Double] = [:]
  /// Whether a table is so large that its counts are estimates.
  public private(set) var isEstimate = false

  public static func read(in database: Database) async throws -> QueueStats {
    var stats = QueueStats()
    for queue in QueueTable.allCases { try await stats.add(queue, in: database) }
    return stats
  }

  private mutating func add(_ queue: QueueTable, in database: Database) async throws {
    // Like the planner's estimate: rows per page when the table was analyzed, times its pages now.
    let size = try await database.slow.first(
      """
      SELECT (SELECT count(*) FROM (SELECT FROM \(queue.table) LIMIT \(Self.countedRows + 1)) AS few) AS few,
        CASE WHEN c.reltuples > 0 AND c.relpages > 0 THEN c.reltuples / c.relpages ELSE \(Double(Self.rowsPerPage)) END
          * (pg_relation_size(c.oid) / current_setting('block_size')::integer) AS estimate
      FROM pg_class AS c
      WHERE c.oid = \(queue.rawTable)::text::regclass
      """)
    guard let size else { return }
    let (few, estimate): (Int, Double) = (try size["few"], try size["estimate"])
    let isSample = few > Self.countedRows
    let part = isSample ? min(1, Double(Self.countedRows) / max(estimate, 1)) : 1
    let sample: SQL = isSample ? "TABLESAMPLE SYSTEM (\(Float(part * 100)))" : ""
    let rows = try await database.slow.rows(
      """
      SELECT \(queue.type) AS type,
        count(*) FILTER (WHERE q.died_at IS NULL AND NOT \(queue.isInFlight) AND \(queue.dueAt) <= now()) AS due,
        count(*) FILTER (WHERE q.died_at IS NULL AND NOT \(queue.isInFlight) AND \(queue.dueAt) > now()) AS waiting,
        count(*) FILTER (WHERE q.died_at IS NULL AND \(queue.isInFlight)) AS in_flight,
        count(*) FILTER (WHERE q.died_at IS NOT NULL) AS dead
      FROM \(queue.table) AS q \(sample)
      GROUP BY 1
      """)
    isEstimate = isEstimate || isSample
    for row in rows {
      func count(_ name: String) throws -> Int { Int((Double(try row[name] as Int) / part).rounded()) }
      let more = Counts(
        due: try count("due"), waiting: try count("waiting"), inFlight: try count("in_flight"), dead: try count("dead"))
      total.add(more)
      types[try row["type"], default: Counts()].add(more)
    }
    // Uses an index, however many rows there are.
    let oldest: Double? = try await database.slow.first(
      """
      SELECT extract(epoch FROM now() - \(queue.dueAt))::float8
      FROM \(queue.table) AS q
      WHERE q.died_at IS NULL AND isfinite(\(queue.dueAt)) AND \(queue.dueAt) <= now() AND NOT \(queue.isInFlight)
      ORDER BY \(queue == .notices ? "q.id" : "q.due_at, q.id")
      LIMIT 1
      """
    ).map { try $0[0] }
    if let oldest { oldestDueSeconds = max(oldest, oldestDueSeconds ?? 0) }
    let devices: SQL = queue == .deliveries ? "JOIN devices AS d ON d.id = q.device_id" : ""
    let isUndelivered: SQL = "q.died_at IS NULL AND \(queue.type) <> \(Push.badgeOnly)"
    // A channel that has failed for long, such as webhooks, must not hide that another has begun to.
    let others: SQL = isSample ? "UNION ALL SELECT * FROM \(queue.table) AS q \(sample) WHERE \(isUndelivered)" : ""
    let undelivered = try await database.slow.rows(
      """
      SELECT \(queue.channel) AS channel, extract(epoch FROM now() - min(q.created_at))::float8 AS age
      FROM (
        (SELECT * FROM \(queue.table) AS q WHERE \(isUndelivered) ORDER BY q.id LIMIT \(Self.oldestRows))
        \(others)
      ) AS q
      \(devices)
      GROUP BY 1
      """)
    for row in undelivered { oldestUndeliveredSeconds[try row["channel"]] = max(0, try row["age"]) }
  }
}

extension QueueStats.Counts {
  fileprivate mutating func add(_ more: Self) {
    due += more.due
    waiting += more.waiting
    inFlight += more.inFlight
    dead += more.dead
  }
}
