import Foundation
import Postgres

/// A queued row or a dead letter, as an operator sees it: without its content and without addresses.
public struct QueueRow: Sendable, Encodable {
  /// For example, `deliveries/17`.
  public struct ID: Sendable, Hashable, Encodable, CustomStringConvertible {
    public let queue: QueueTable
    public let number: Int64

    /// Nil unless the text is a table's name, a slash and a number.
    public init?(_ text: String) {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, let queue = QueueTable(rawValue: String(parts[0])), let number = Int64(parts[1]) else {
        return nil
      }
      (self.queue, self.number) = (queue, number)
    }

    init(_ queue: QueueTable, _ number: Int64) {
      (self.queue, self.number) = (queue, number)
    }

    public var description: String { "\(queue.rawValue)/\(number)" }

    public func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(description)
    }
  }

  public let id: ID
  public let type: String
  /// Nil if there are several recipients, or if the user is gone.
  public let recipient: String?
  public let device: String?
  public let attempts: Int
  /// When the row is or was due; for a dead letter, when it died.
  public let time: String
  public let lastError: String?

  /// Lists queued rows, those due longest first, or dead letters, latest first.
  ///
  /// - Parameters:
  ///   - type: only rows of this type.
  ///   - username: only rows for this user.
  /// - Throws: ``AppError`` if there is no such user.
  public static func list(
    dead: Bool, ofType type: String? = nil, forUserNamed username: String? = nil, atMost limit: Int,
    in database: Database
  ) async throws -> [QueueRow] {
    var rows: [(time: Timestamp, row: QueueRow)] = []
    let user = if let username { try await User.named(username, in: database) } else { User.ID?.none }
    for queue in QueueTable.allCases {
      let time: SQL = dead ? "q.died_at" : queue.dueAt
      let found = try await database.slow.rows(
        """
        SELECT q.id, \(queue.type) AS type, \(queue.recipient) AS recipient, \(queue.device) AS device,
          \(queue.attempts) AS attempts, q.last_error, \(time) AS time
        FROM \(queue.table) AS q
        WHERE q.died_at IS \(unescaped: dead ? "NOT NULL" : "NULL") AND isfinite(\(time))
          AND (\(type) IS NULL OR \(queue.type) = \(type)) AND \(user.map(queue.concerns) ?? "true")
        ORDER BY \(time) \(unescaped: dead ? "DESC" : "ASC"), q.id
        LIMIT \(limit)
        """)
      rows += try found.map { row in
        let time: Timestamp = try row["time"]
        let (recipient, device): (User.ID?, Device.ID?) = (try row["recipient"], try row["device"])
        return (
          time,
          QueueRow(
            id: ID(queue, try row["id"]), type: try row["type"], recipient: recipient?.description,
            device: device?.description, attempts: try row["attempts"], time: time.rfc3339(),
            lastError: try row["last_error"])
        )
      }
    }
    return rows.sorted { dead ? $0.time > $1.time : $0.time < $1.time }.prefix(limit).map(\.row)
  }
}
