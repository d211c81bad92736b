import Foundation
import Postgres

/// Rows that were given up: permanently refused, or not delivered in time. They stay in their tables, with `died_at`
/// set, until an operator retries them or they are purged. They do not hold up the rows behind them.
public enum DeadLetters {
  private static let batch = 500

  /// The names among `rows` that no dead letter has.
  public static func missing(among rows: [QueueRow.ID], in database: Database) async throws -> [QueueRow.ID] {
    var found: Set<QueueRow.ID> = []
    for queue in QueueTable.allCases {
      let numbers = rows.filter { $0.queue == queue }.map(\.number)
      found.formUnion(
        try await database.rows(
          "SELECT q.id FROM \(queue.table) AS q WHERE q.id = ANY(\(numbers)) AND q.died_at IS NOT NULL"
        ).map { QueueRow.ID(queue, try $0[0]) })
    }
    return rows.filter { !found.contains($0) }
  }

  /// Makes rows that wait after a failure due now: the outage is over. They keep their attempts.
  ///
  /// - Parameter type: only rows of this type.
  /// - Returns: the number of these rows.
  public static func hurry(ofType type: String? = nil, in database: Database) async throws -> Int {
    var total = 0
    for queue in QueueTable.allCases {
      // Each row once: it may fail again at once.
      var last: Int64? = 0
      while let place = last {
        let ids = try await hurry(queue, ofType: type, after: place, in: database)
        total += ids.count
        last = ids.max()
      }
    }
    if total > 0 { database.notify(NotificationQueue.channel) }
    return total
  }

  private static func hurry(
    _ queue: QueueTable, ofType type: String?, after place: Int64, in database: Database
  ) async throws -> [Int64] {
    guard queue != .notices else { return [] }
    return try await database.batch(
      """
      WITH waiting AS MATERIALIZED (
        SELECT q.id FROM \(queue.table) AS q
        WHERE q.id > \(place) AND q.died_at IS NULL AND \(queue.waitsAfterFailure) AND (\(type) IS NULL OR \(queue.type) = \(type))
        ORDER BY q.id
        LIMIT \(batch)
        FOR UPDATE OF q SKIP LOCKED
      )
      UPDATE \(queue.table) AS q SET due_at = now() FROM waiting WHERE q.id = waiting.id
      RETURNING q.id
      """)[0].map { try $0[0] }
  }

  /// Makes dead letters due now, as if they had never been tried.
  ///
  /// A row keeps its id, so a change that deletes it at the same moment finds it, whichever comes first.
  ///
  /// - Parameters:
  ///   - rows: nil for all current dead letters.
  ///   - type: only rows of this type.
  /// - Returns: the number of retried rows.
  public static func retry(
    _ rows: [QueueRow.ID]? = nil, ofType type: String? = nil, in database: Database
  ) async throws -> Int {
    // Excludes rows that die again while this runs.
    guard let now: Timestamp = try await database.value("SELECT clock_timestamp()") else { return 0 }
    var total = 0
    for queue in QueueTable.allCases {
      let ids = rows.map { $0.filter { $0.queue == queue }.map(\.number) }
      if ids?.isEmpty == true { continue }
      while case let count = try await retry(ids, of: queue, ofType: type, diedBefore: now, in: database), count > 0 {
        total += count
      }
    }
    if total > 0 { database.notify(NotificationQueue.channel) }
    return total
  }

  private static func retry(
    _ ids: [Int64]?, of queue: QueueTable, ofType type: String?, diedBefore time: Timestamp, in database: Database
  ) async throws -> Int {
    try await database.batch(
      """
      WITH dead AS MATERIALIZED (
        SELECT q.id FROM \(queue.table) AS q
        WHERE q.died_at <= \(time) AND (\(ids) IS NULL OR q.id = ANY(\(ids)))
          AND (\(type) IS NULL OR \(queue.type) = \(type))
        ORDER BY q.died_at, q.id
        LIMIT \(batch)
        FOR UPDATE OF q SKIP LOCKED
      )
      UPDATE \(queue.table) AS q SET died_at = NULL, last_error = NULL, \(queue.reset)
      FROM dead
      WHERE q.id = dead.id
      """)[0].affected
  }

  /// Deletes dead letters that died this many days ago or earlier.
  ///
  /// - Returns: the number of deleted rows, at most `limit` from each table.
  public static func purge(olderThan days: Int, atMost limit: Int = 1000, in database: Database) async throws -> Int {
    var total = 0
    for queue in QueueTable.allCases {
      total += try await database.purge(
        queue.table, by: "died_at", upTo: "now() - make_interval(days => \(Int32(clamping: days)))", atMost: limit)
    }
    return total
  }
}
