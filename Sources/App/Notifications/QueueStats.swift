import Postgres

/// What is in the queue at one moment, and what was given up.
public struct QueueStats: Sendable, Encodable {
  public struct Counts: Sendable, Encodable {
    /// To be sent now.
    public var due = 0
    /// For a later attempt, or behind something that is.
    public var waiting = 0
    /// Held by a worker.
    public var inFlight = 0
    /// Given up.
    public var dead = 0
  }

  public private(set) var total = Counts()
  public private(set) var types: [String: Counts] = [:]
  /// For how many seconds what is due the longest has been; nil if nothing is.
  public private(set) var oldestDueSeconds: Double?

  public static func read(in database: Database) async throws -> QueueStats {
    let rows = try await database.slow.rows(
      """
      SELECT type, count(*) FILTER (WHERE NOT is_held AND NOT waits) AS due,
        count(*) FILTER (WHERE NOT is_held AND waits) AS waiting, count(*) FILTER (WHERE is_held) AS in_flight,
        0::bigint AS dead,
        extract(epoch FROM now() - min(due_at) FILTER (WHERE NOT is_held AND NOT waits))::float8 AS age
      FROM (
        SELECT type, due_at, (leased_until > now()) IS TRUE AS is_held,
          first_value(due_at) OVER (PARTITION BY recipient_id, subject_id, device_id ORDER BY id) > now() AS waits
        FROM notification_queue
      ) AS each
      GROUP BY type
      UNION ALL
      SELECT type, 0, 0, 0, count(*), NULL FROM dead_letters GROUP BY type
      """)
    var stats = QueueStats()
    for row in rows {
      let (due, waiting): (Int, Int) = (try row["due"], try row["waiting"])
      let (inFlight, dead): (Int, Int) = (try row["in_flight"], try row["dead"])
      let more = Counts(due: due, waiting: waiting, inFlight: inFlight, dead: dead)
      stats.total.add(more)
      stats.types[try row["type"], default: Counts()].add(more)
      if let age: Double = try row["age"] { stats.oldestDueSeconds = max(age, stats.oldestDueSeconds ?? 0) }
    }
    return stats
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

/// A row of the queue, or a dead letter, as an operator sees it: without what it says, and without addresses.
public struct QueueRow: Sendable, Encodable {
  public let id: Int64
  public let notification: String
  public let type: String
  public let recipient: String
  /// Nil: for all of the recipient's.
  public let device: String?
  public let attempts: Int
  /// When it is, or was, to be sent; of a dead letter, when it was given up.
  public let time: String
  public let lastError: String?

  /// What has been due the longest first; of dead letters, the latest first.
  public static func list(
    dead: Bool, ofType type: String? = nil, atMost limit: Int, in database: Database
  ) async throws -> [QueueRow] {
    let source: SQL = dead ? "died_at AS time FROM dead_letters" : "due_at AS time FROM notification_queue"
    let order: SQL = dead ? "time DESC, id DESC" : "time, id"
    let rows = try await database.slow.rows(
      """
      SELECT id, notification_id, type, recipient_id, device_id, attempts, last_error, \(source)
      WHERE \(type) IS NULL OR type = \(type)
      ORDER BY \(order)
      LIMIT \(limit)
      """)
    return try rows.map { row in
      let (notification, recipient): (Identifier<Notice>, User.ID) = (
        try row["notification_id"], try row["recipient_id"]
      )
      let device: Device.ID? = try row["device_id"]
      return QueueRow(
        id: try row["id"], notification: notification.description, type: try row["type"],
        recipient: recipient.description, device: device?.description, attempts: try row["attempts"],
        time: (try row["time"] as Timestamp).rfc3339(), lastError: try row["last_error"])
    }
  }
}
