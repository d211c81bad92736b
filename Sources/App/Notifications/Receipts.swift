import Foundation
import Postgres

/// What has become of rows that a worker held, until it is written down. Nothing of it is for rows that the worker no
/// longer holds: each statement asks for the lease.
struct Receipts: Sendable {
  typealias Held = NotificationQueue.Held

  /// Rows that are done with: all who were to be told have been, or have a row of their own below, or a dead letter.
  private(set) var finished: [Finished] = []
  private(set) var own: [Own] = []
  private(set) var dead: [Dead] = []
  private(set) var retried: [Retried] = []
  private(set) var released: [Held] = []
  /// Devices that their providers do not know any more.
  private(set) var gone: [Device] = []

  struct Finished: Sendable {
    let held: Held
    /// Whether something is put in its place: then it must be its turn.
    let isReplaced: Bool
  }

  /// For one device, in place of the finished row of this id.
  struct Own: Sendable {
    let row: Int64
    let device: Device.ID
    /// As it was sent, where several rows were one.
    let payload: JSONDocument?
    let attempts: Int
    let delay: Double
    let error: String?
  }

  struct Dead: Sendable {
    let row: Int64
    let device: Device.ID?
    let payload: JSONDocument?
    let error: String
  }

  struct Retried: Sendable {
    let held: Held
    let payload: JSONDocument?
    let delay: Double
    let error: String
  }

  var isEmpty: Bool { finished.isEmpty && retried.isEmpty && released.isEmpty && gone.isEmpty }
  /// All that is no longer held once it is written.
  var settled: [Held] { finished.map(\.held) + retried.map(\.held) + released }

  /// Adds what has become of others since.
  mutating func append(_ later: Receipts) {
    finished += later.finished
    own += later.own
    dead += later.dead
    retried += later.retried
    released += later.released
    gone += later.gone
  }

  /// - Parameter isReplaced: whether any of them is given to devices one by one, or buried, below.
  mutating func finish(_ rows: some Sequence<Held>, isReplaced: Bool = false) {
    finished += rows.map { Finished(held: $0, isReplaced: isReplaced) }
  }

  mutating func release(_ rows: some Sequence<Held>) { released += rows }
  mutating func forget(_ device: Device) { gone.append(device) }

  /// - Parameter row: finished beside it.
  mutating func bury(_ row: Int64, for device: Device.ID?, _ payload: JSONDocument?, because error: String) {
    dead.append(Dead(row: row, device: device, payload: payload, error: Self.printable(error)))
  }

  /// Spools a notification for a device that waits for something older, or has not been tried.
  ///
  /// - Parameter row: finished beside it.
  mutating func spool(_ row: Int64, for device: Device.ID, _ payload: JSONDocument?) {
    own.append(Own(row: row, device: device, payload: payload, attempts: 0, delay: 0, error: nil))
  }

  /// Has one device tried again that could not be told.
  ///
  /// - Parameter row: finished beside it.
  mutating func retry(
    _ row: Int64, for device: Device.ID, _ payload: JSONDocument?, after delay: Double, because error: String
  ) {
    own.append(
      Own(row: row, device: device, payload: payload, attempts: 1, delay: delay, error: Self.printable(error)))
  }

  /// Has a row of one device, or a mail, tried again.
  mutating func retry(_ held: Held, _ payload: JSONDocument?, after delay: Double, because error: String) {
    retried.append(Retried(held: held, payload: payload, delay: delay, error: Self.printable(error)))
  }

  /// PostgreSQL's text holds no U+0000, and an operator reads no essay.
  private static func printable(_ error: String) -> String {
    String(String.UnicodeScalarView(error.unicodeScalars.filter { $0 != "\u{0}" }.prefix(500)))
  }

  // MARK: Writing

  /// Writes all of it down, in one transaction. Repeating it does no harm.
  func write(in database: Database) async throws {
    if own.isEmpty, dead.isEmpty, retried.isEmpty, released.isEmpty {
      if !finished.isEmpty { try await database.batch(NotificationQueue.byIndex, Self.deleting(finished.map(\.held))) }
    } else {
      try await database.batch(NotificationQueue.byIndex, locking, finishing, retrying, releasing)
    }
    if !gone.isEmpty { try await forgetDevices(in: database) }
  }

  /// The rows of claims that are still held, locked in the order of their ids: a deletion locks many of them, too.
  private static func held(_ rows: [Held]) -> SQL {
    """
    held AS MATERIALIZED (
      SELECT q.id
      FROM unnest(\(rows.map(\.id)), \(rows.map(\.lease))) AS mine (id, lease)
      JOIN notification_queue AS q ON q.id = mine.id AND q.lease = mine.lease
      ORDER BY q.id
      FOR UPDATE OF q
    )
    """
  }

  private static func deleting(_ rows: [Held]) -> SQL {
    "WITH \(held(rows)) DELETE FROM notification_queue AS q USING held WHERE q.id = held.id"
  }

  private var locking: SQL { "WITH \(Self.held(settled)) SELECT count(*) FROM held" }

  /// Only what was held is put in place of it. All that is put is in the order of what it stands for: nothing while
  /// something older is there that is not finished with it. Who stood still beyond the claim's end may have lost the first
  /// rows of a chain to somebody, and hold those behind them still.
  private var finishing: SQL {
    """
    WITH mine AS MATERIALIZED (
      SELECT q.id, q.recipient_id, q.subject_id, \(NotificationQueue.line("q.device_id")) AS line, mine.is_replaced,
        row_number() OVER (
          PARTITION BY q.recipient_id, q.subject_id, \(NotificationQueue.line("q.device_id")) ORDER BY q.id
        ) AS nth
      FROM unnest(\(finished.map(\.held.id)), \(finished.map(\.held.lease)), \(finished.map(\.isReplaced)))
        AS mine (id, lease, is_replaced)
      JOIN notification_queue AS q ON q.id = mine.id AND q.lease = mine.lease
    ),
    held AS MATERIALIZED (
      SELECT id FROM mine
      WHERE NOT is_replaced OR nth > (
        SELECT count(*) FROM notification_queue AS older
        WHERE older.recipient_id = mine.recipient_id AND older.subject_id = mine.subject_id AND older.id < mine.id
          AND \(NotificationQueue.line("older.device_id")) = mine.line
      )
    ),
    gone AS (
      DELETE FROM notification_queue AS q USING held WHERE q.id = held.id
      RETURNING q.id, q.notification_id, q.type, q.recipient_id, q.subject_id, q.payload, q.created_at, q.attempts
    ),
    buried AS (
      INSERT INTO dead_letters (
        id, notification_id, type, recipient_id, subject_id, device_id, payload, created_at, attempts, last_error
      )
      -- One row may be several dead letters: each has a number of its own, of the same kind.
      SELECT nextval(pg_get_serial_sequence('notification_queue', 'id')), gone.notification_id, gone.type,
        gone.recipient_id, gone.subject_id, dead.device_id, coalesce(dead.payload, gone.payload), gone.created_at,
        gone.attempts + 1, dead.error
      FROM unnest(
        \(dead.map(\.row)), \(dead.map(\.device)), \(dead.map(\.payload)), \(dead.map(\.error))
      ) AS dead (id, device_id, payload, error)
      JOIN gone ON gone.id = dead.id
    )
    INSERT INTO notification_queue (
      notification_id, type, recipient_id, subject_id, device_id, payload, created_at, due_at, attempts, last_error
    )
    SELECT gone.notification_id, gone.type, gone.recipient_id, gone.subject_id, own.device_id,
      coalesce(own.payload, gone.payload), gone.created_at,
      -- Behind others it is not due before them: thousands that cannot be taken yet would be looked at all the time.
      greatest(
        now() + make_interval(secs => own.delay),
        (
          SELECT max(q.due_at) FROM notification_queue AS q
          WHERE q.recipient_id = gone.recipient_id AND q.subject_id = gone.subject_id
            AND \(NotificationQueue.line("q.device_id")) = own.device_id
        )),
      own.attempts, own.error
    FROM unnest(
      \(own.map(\.row)), \(own.map(\.device)), \(own.map(\.payload)), \(own.map { Int32($0.attempts) }),
      \(own.map(\.delay)), \(own.map(\.error))
    ) AS own (id, device_id, payload, attempts, delay, error)
    JOIN gone ON gone.id = own.id
    ORDER BY gone.id
    """
  }

  private var retrying: SQL {
    """
    UPDATE notification_queue AS q
    SET attempts = q.attempts + 1, last_error = r.error, due_at = now() + make_interval(secs => r.delay),
      payload = coalesce(r.payload, q.payload), lease = NULL, leased_until = NULL
    FROM unnest(
      \(retried.map(\.held.id)), \(retried.map(\.held.lease)), \(retried.map(\.payload)), \(retried.map(\.delay)),
      \(retried.map(\.error))
    ) AS r (id, lease, payload, delay, error)
    WHERE q.id = r.id AND q.lease = r.lease
    """
  }

  /// Also what could not be finished, because it is not its turn.
  private var releasing: SQL {
    """
    WITH \(Self.held(released + finished.map(\.held)))
    UPDATE notification_queue AS q SET lease = NULL, leased_until = NULL FROM held WHERE q.id = held.id
    """
  }

  /// Forgets devices, unless they have been given another token meanwhile, and what waits for them alone.
  private func forgetDevices(in database: Database) async throws {
    let these: SQL = "SELECT * FROM unnest(\(gone.map(\.id)), \(gone.map(\.token)))"
    try await database.batch(NotificationQueue.byIndex, Device.forgetting(where: "(id, token) IN (\(these))"))
  }
}
