import Foundation
import Postgres

/// The rows of changes that somebody has yet to hear of.
///
/// A row without a device is for all of its recipient's. The first attempt at it deletes it, and whichever device could
/// not be told has a row of its own from then on. Of one recipient, subject and device, only the oldest row can be
/// claimed, and with it those behind it.
enum NotificationQueue {
  /// On which a process that has put something into the queue, or into an inbox, says so.
  static let channel = "muster_queue"

  /// A row that a worker has claimed.
  struct Item: Sendable {
    let id: Int64
    let notificationID: UUID
    let type: String
    let recipient: User.ID
    let subject: UUID
    /// Nil: all of the recipient's.
    let device: Device.ID?
    var payload: JSONDocument
    let attempts: Int
    let createdAt: Timestamp

    /// By place: names are looked up, thousands of times a second.
    fileprivate init(row: Row) throws {
      id = try row[1]
      notificationID = try row[2]
      type = try row[3]
      recipient = try row[4]
      subject = try row[5]
      device = try row[6]
      payload = try row[7]
      attempts = try row[8]
      createdAt = try row[9]
    }
  }

  /// A row that is held, and by which claim: whoever writes to it must still hold it by that.
  struct Held: Sendable {
    let id: Int64
    let lease: UUID
  }

  /// Mails go another way than what goes to devices, and neither waits for the other. With the mails goes what Apple is
  /// asked to revoke.
  enum Kind: Sendable {
    case pushes, mails

    fileprivate var condition: SQL {
      switch self {
      case .pushes: "NOT (starts_with(due.type, 'mail-') OR due.type = 'apple-revoke')"
      case .mails: "(starts_with(due.type, 'mail-') OR due.type = 'apple-revoke')"
      }
    }
  }

  /// Seconds for which a claim holds unless it is renewed: so soon is taken over what a worker held that died.
  static let leaseSeconds = 4
  /// Rows behind the oldest one that are claimed with it.
  private static let chainLength = 50

  /// Keeps the planner to the indexes. What it knows of this table may be a minute old, by when a table of a few rows
  /// has a hundred thousand.
  static let byIndex: SQL =
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"

  /// In which order of its recipient and subject a row is: a device's, or that of all of them. As the index has it.
  static func line(_ device: SQL) -> SQL {
    "coalesce(\(device), '00000000-0000-0000-0000-000000000000'::uuid)"
  }

  /// Claims due rows for a worker, for a while: afterwards another may take them over. Of one recipient's rows about one
  /// subject, for one device or for all, the oldest is taken, and those behind it with it.
  ///
  /// - Parameters:
  ///   - isFull: whether all that is due is looked at, or only what has become due in the last seconds. What was deleted
  ///     stays in the index while an older transaction goes on, and in front of what is due: whoever looks at it ten
  ///     times a second gets to nothing else. Who sees to it that a full claim is made each second lets nothing wait for
  ///     longer than that: what a change commits late, a worker that died or a full batch has left behind is due since
  ///     longer ago, and found by a full one.
  ///   - limit: of oldest rows, and as many behind them.
  ///   - lease: a token of this claim; whoever acknowledges must still hold it.
  /// - Returns: the oldest ones' chains, each in order.
  static func claim(
    _ kind: Kind = .pushes, isFull: Bool = true, atMost limit: Int, lease: UUID, in database: Database
  ) async throws -> [[Item]] {
    let rows = try await database.batch(byIndex, claiming(kind, isFull: isFull, atMost: limit, lease: lease))[1]
    var chains: [[Item]] = []
    var places: [Int64: Int] = [:]
    let claimed = try rows.map { row -> (head: Int64, item: Item) in (try row[0], try Item(row: row)) }
    // In the order of their ids, and so each of the oldest before what is behind it.
    for (head, item) in claimed.sorted(by: { $0.item.id < $1.item.id }) {
      if let place = places[head] {
        chains[place].append(item)
      } else {
        places[head] = chains.count
        chains.append([item])
      }
    }
    return chains
  }

  private static func claiming(_ kind: Kind, isFull: Bool, atMost limit: Int, lease: UUID) -> SQL {
    let since: SQL = isFull ? "" : "AND due.due_at > now() - interval '5 seconds'"
    // One statement, and so one snapshot: in it, nothing is between the oldest row and those behind it that was not seen.
    // OFFSET 0 keeps each look for an older row one into the index.
    return """
      WITH due AS MATERIALIZED (
        SELECT due.id, due.recipient_id, due.subject_id, due.device_id
        FROM notification_queue AS due
        WHERE due.due_at <= now() \(since)
          AND (due.leased_until IS NULL OR due.leased_until <= now())
          AND \(kind.condition)
          AND NOT EXISTS (
            SELECT FROM notification_queue AS older
            WHERE older.recipient_id = due.recipient_id AND older.subject_id = due.subject_id AND older.id < due.id
              AND \(line("older.device_id")) = \(line("due.device_id"))
            OFFSET 0
          )
        ORDER BY due.due_at, due.id
        LIMIT \(limit)
        FOR UPDATE OF due SKIP LOCKED
      ),
      behind AS MATERIALIZED (
        SELECT due.id AS head, next.id, next.nth
        FROM due
        CROSS JOIN LATERAL (
          SELECT q.id, row_number() OVER (ORDER BY q.id) AS nth
          FROM (
            SELECT id FROM notification_queue
            WHERE recipient_id = due.recipient_id AND subject_id = due.subject_id AND id > due.id
              AND \(line("device_id")) = \(line("due.device_id"))
            ORDER BY id
            LIMIT \(chainLength)
          ) AS q
        ) AS next
        LIMIT \(limit)
      ),
      locked AS MATERIALIZED (
        SELECT behind.head, behind.id, behind.nth
        FROM behind
        JOIN notification_queue AS q ON q.id = behind.id
        WHERE q.due_at <= now() AND (q.leased_until IS NULL OR q.leased_until <= now())
        FOR UPDATE OF q SKIP LOCKED
      ),
      mine AS (
        SELECT id AS head, id FROM due
        UNION ALL
        SELECT head, id
        FROM (
          SELECT head, id, nth, row_number() OVER (PARTITION BY head ORDER BY id) AS got FROM locked
        ) AS each
        -- A chain ends where somebody else has one of its rows: who deletes it may yet leave it.
        WHERE nth = got
      )
      UPDATE notification_queue AS q
      SET lease = \(lease), leased_until = now() + make_interval(secs => \(Double(leaseSeconds)))
      FROM mine
      WHERE q.id = mine.id
      RETURNING mine.head, q.id, q.notification_id, q.type, q.recipient_id, q.subject_id, q.device_id, q.payload,
        q.attempts, q.created_at
      """
  }

  /// Holds on to what was claimed, unless another worker has it by now, or somebody is deleting it: nobody waits here,
  /// or all of it would be lost for one row.
  ///
  /// - Returns: what is still held.
  static func renew(_ held: [Held], in database: Database) async throws -> Set<Int64> {
    let rows = try await database.batch(
      byIndex,
      """
      WITH held AS MATERIALIZED (
        SELECT q.id
        FROM unnest(\(held.map(\.id)), \(held.map(\.lease))) AS mine (id, lease)
        JOIN notification_queue AS q ON q.id = mine.id AND q.lease = mine.lease
        FOR UPDATE OF q SKIP LOCKED
      )
      UPDATE notification_queue AS q SET leased_until = now() + make_interval(secs => \(Double(leaseSeconds)))
      FROM held
      WHERE q.id = held.id
      RETURNING q.id
      """)[1]
    return Set(try rows.map { try $0[0] })
  }

  /// Where a chain's notifications go.
  struct Targets: Sendable {
    var devices: [(device: Device, isBehind: Bool)] = []
    /// Types that the recipient does not want to be told of.
    var muted: Set<String> = []
  }

  /// Looks up to which devices chains are to be brought, each by its first row: those whose sessions go on. A device that
  /// still waits for something older of the subject is behind.
  static func targets(of chains: [Item], in database: Database) async throws -> [Targets] {
    var targets = [Targets](repeating: Targets(), count: chains.count)
    let rows = try await database.batch(
      byIndex,
      """
      SELECT c.place, d.id, d.platform, d.token, d.environment, d.topic, d.sealed_secret,
        CASE WHEN d.previous_secret_until > now() THEN d.sealed_previous_secret END,
        c.device_id IS NULL AND EXISTS (
          SELECT FROM notification_queue AS q
          WHERE q.recipient_id = c.recipient_id AND q.subject_id = c.subject_id AND \(line("q.device_id")) = d.id
          OFFSET 0
        ),
        ARRAY(SELECT type FROM muted_notifications WHERE user_id = c.recipient_id)
      FROM unnest(\(chains.map(\.recipient)), \(chains.map(\.subject)), \(chains.map(\.device))) WITH ORDINALITY
        AS c (recipient_id, subject_id, device_id, place)
      JOIN devices AS d ON d.user_id = c.recipient_id AND (c.device_id IS NULL OR d.id = c.device_id)
      JOIN sessions AS s ON s.id = d.session_id AND s.ended_at IS NULL
      """)[1]
    for row in rows {
      let place: Int = try row[0] - 1
      let secrets: [Data?] = [try row[6], try row[7]]
      let device = Device(
        id: try row[1], platform: try row[2], token: try row[3], environment: try row[4], topic: try row[5],
        sealedSecrets: secrets.compactMap { $0 })
      targets[place].devices.append((device, try row[8]))
      targets[place].muted = Set(try row[9] as [String])
    }
    return targets
  }
}
