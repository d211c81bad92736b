import Foundation
import Postgres

/// The rows of changes that somebody has yet to hear of.
enum NotificationQueue {
  /// On which a process that has put something into the queue, or into an inbox, says so.
  static let channel = "muster_queue"

  /// A row that a worker has claimed.
  struct Item: Sendable {
    let id: Int64
    let notificationID: UUID
    let type: String
    let recipient: User.ID
    let payload: JSONDocument
    let attempts: Int
    let createdAt: Timestamp
  }

  /// Mails go another way than what goes to devices, and neither waits for the other. With the mails goes what Apple is
  /// asked to revoke.
  enum Kind: Sendable {
    case pushes, mails
  }

  /// Claims due rows for a worker, for a while: afterwards another may take them over. Of one recipient's rows about one
  /// subject only the oldest is taken, so that they arrive in order.
  ///
  /// - Parameter lease: a token of this claim; whoever acknowledges must still hold it.
  static func claim(
    _ kind: Kind = .pushes, atMost limit: Int, lease: UUID, seconds: Int, in database: Database
  ) async throws -> [Item] {
    let rows = try await database.batch(
      """
      UPDATE notification_queue AS q
      SET lease = \(lease), leased_until = now() + make_interval(secs => \(Double(seconds)))
      WHERE q.id IN (
        SELECT due.id FROM notification_queue AS due
        WHERE due.due_at <= now() AND (due.leased_until IS NULL OR due.leased_until <= now())
          AND (starts_with(due.type, \(Mail.prefix)) OR due.type = \(AppleGrant.revocation)) = \(kind == .mails)
          AND NOT EXISTS (
            SELECT 1 FROM notification_queue AS older
            WHERE older.recipient_id = due.recipient_id AND older.subject_id = due.subject_id AND older.id < due.id
          )
        ORDER BY due.due_at, due.id
        LIMIT \(limit)
        FOR UPDATE SKIP LOCKED
      )
      RETURNING q.id, q.notification_id, q.type, q.recipient_id, q.payload, q.attempts, q.created_at
      """)[0]
    return try rows.map { row in
      Item(
        id: try row["id"], notificationID: try row["notification_id"], type: try row["type"],
        recipient: try row["recipient_id"], payload: try row["payload"], attempts: try row["attempts"],
        createdAt: try row["created_at"])
    }.sorted { $0.id < $1.id }
  }

  /// Holds on to what was claimed, unless another worker has it by now.
  ///
  /// - Returns: what is still held.
  static func renew(_ ids: [Int64], lease: UUID, seconds: Int, in database: Database) async throws -> [Int64] {
    let rows = try await database.batch(
      """
      WITH \(held(ids, lease))
      UPDATE notification_queue AS q SET leased_until = now() + make_interval(secs => \(Double(seconds)))
      FROM held
      WHERE q.id = held.id
      RETURNING q.id
      """)[0]
    return try rows.map { try $0["id"] }
  }

  /// Forgets what was delivered, unless the lease has passed to another worker meanwhile.
  static func finish(_ ids: [Int64], lease: UUID, in database: Database) async throws {
    try await database.batch(
      """
      WITH \(held(ids, lease))
      DELETE FROM notification_queue AS q USING held WHERE q.id = held.id
      """)
  }

  /// Notes a failed attempt, to be repeated after a while that doubles each time.
  static func retry(_ item: Item, because reason: String, lease: UUID, in database: Database) async throws {
    let delay = min(3600, pow(2, Double(item.attempts))) * Double.random(in: 0.8...1.2)
    try await database.batch(
      """
      UPDATE notification_queue
      SET attempts = attempts + 1, last_error = \(reason), due_at = now() + make_interval(secs => \(delay)),
        lease = NULL, leased_until = NULL
      WHERE id = \(item.id) AND lease = \(lease)
      """)
  }

  /// Gives back what was claimed and not tried.
  static func release(_ ids: [Int64], lease: UUID, in database: Database) async throws {
    try await database.batch(
      """
      WITH \(held(ids, lease))
      UPDATE notification_queue AS q SET lease = NULL, leased_until = NULL
      FROM held
      WHERE q.id = held.id
      """)
  }

  /// The rows of a claim that is still held, locked in the order of their ids: a deletion locks many of them, too.
  private static func held(_ ids: [Int64], _ lease: UUID) -> SQL {
    """
    held AS MATERIALIZED (
      SELECT id FROM notification_queue
      WHERE id = ANY(\(ids)) AND lease = \(lease)
      ORDER BY id
      FOR UPDATE
    )
    """
  }
}
