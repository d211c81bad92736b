import Foundation
import Postgres
import Synchronization

/// A list that a phone keeps a copy of, named as on the wire and in the database.
public enum Collection: String, CaseIterable, Sendable, SQLValue {
  case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
  case notificationPreferences

  /// By their names: an enumeration's own initializer compares with one name after the other.
  static let named = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })
}

/// A transaction that knows who must hear of it. Every write takes one, and collects in it the collections it touches
/// and the notifications and mails it causes; they are written last, in the round trip of COMMIT. So there is no change
/// without its stamps and its queue rows, and none of these without their change.
///
/// Locks are taken in one order everywhere: users, events, the rest, stamps. A lock that closes a set of people is a
/// statement of its own before the one that reads the set: a statement that waits for a row still sees the other tables
/// as they were before it waited.
public final class Change: Querying {
  private let transaction: Transaction
  private let hearers = Mutex(Hearers())

  /// Who must hear of it.
  private struct Hearers {
    var touched: Set<Touch> = []
    var touchedSets: [(collection: Collection, users: SQL)] = []
    var notices: [(audience: Audience, notice: Notice)] = []
    var mails: [Mail] = []
    var revocations: [AppleGrant] = []
    var erasures: [SQL] = []
  }

  private struct Touch: Hashable {
    let user: User.ID
    let collection: Collection
  }

  /// Who is told.
  fileprivate enum Audience {
    case one(User.ID)
    /// Everybody invited to the event that it is about who has not declined.
    case guests
    /// Everybody who is going to it, and who hosts it.
    case goers
  }

  fileprivate init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await transaction.send(statements)
  }

  /// A statement whose answer is not needed: it leaves with the next one, or with COMMIT, and costs no round trip.
  func write(_ statement: SQL) throws {
    try transaction.write(statement)
  }

  /// These collections' GET answers differently for these users from this commit on.
  func touch(_ collections: Collection..., of users: User.ID...) {
    hearers.withLock { hearers in
      for user in users {
        for collection in collections { hearers.touched.insert(Touch(user: user, collection: collection)) }
      }
    }
  }

  /// The same for a set of any size that stays in the database.
  ///
  /// - Parameter users: a query of one column of user ids, which sees everything that this change has done.
  func touch(_ collections: Collection..., ofUsersIn users: SQL) {
    hearers.withLock { $0.touchedSets += collections.map { ($0, users) } }
  }

  /// Puts a notification into the recipient's inbox and into the queue.
  func notify(_ recipient: User.ID, _ notice: Notice) {
    hearers.withLock { $0.notices.append((.one(recipient), notice)) }
  }

  /// The same, for everybody who is invited to the event that it is about and has not declined.
  func notifyGuests(_ notice: Notice) {
    hearers.withLock { $0.notices.append((.guests, notice)) }
  }

  /// The same, for everybody who is going to the event that it is about, and its host.
  func notifyGoers(_ notice: Notice) {
    hearers.withLock { $0.notices.append((.goers, notice)) }
  }

  /// Puts a mail into the queue.
  func mail(_ mail: Mail) {
    hearers.withLock { $0.mails.append(mail) }
  }

  /// Has the worker revoke what Apple granted, by a row of the queue that does not say whose it was.
  func revoke(_ grant: AppleGrant) {
    hearers.withLock { $0.revocations.append(grant) }
  }

  /// Deletes rows last of all: the sets of people who hear of the change are read from them.
  ///
  /// - Parameter rows: a DELETE of rows that this change has locked, or that nobody can change without what it has locked.
  func erase(_ rows: SQL) {
    hearers.withLock { $0.erasures.append(rows) }
  }

  /// - Returns: whether a worker has something to do now.
  fileprivate func finish() -> Bool {
    let hearers = hearers.withLock { $0 }
    if let statement = Self.telling(hearers) { transaction.atCommit(statement) }
    for mail in hearers.mails { transaction.atCommit(mail.enqueueing) }
    for grant in hearers.revocations { transaction.atCommit(grant.enqueueing) }
    for erasure in hearers.erasures { transaction.atCommit(erasure) }
    return !hearers.notices.isEmpty || !hearers.mails.isEmpty || !hearers.revocations.isEmpty
  }

  /// Stamps, inbox and queue: one statement for any number of them.
  private static func telling(_ hearers: Hearers) -> SQL? {
    guard !hearers.touched.isEmpty || !hearers.touchedSets.isEmpty || !hearers.notices.isEmpty else { return nil }
    var touched: SQL = """
      SELECT user_id, collection, 0 AS notices
      FROM unnest(\(hearers.touched.map(\.user)), \(hearers.touched.map(\.collection))) AS one (user_id, collection)
      """
    for (collection, users) in hearers.touchedSets {
      touched += "\nUNION ALL SELECT user_id, \(collection), 0 FROM (\(users)) AS touched_users (user_id)"
    }
    guard !hearers.notices.isEmpty else { return "WITH \(locking(touched))\n\(stamping)" }
    touched += "\nUNION ALL SELECT recipient_id, \(Collection.notifications), 1 FROM told"
    // What is about one subject is delivered in the order in which it is inserted into the queue.
    return """
      WITH \(told(hearers.notices)),
      \(locking(touched)),
      stamped AS (
        \(stamping)
        RETURNING s.user_id, s.collection, s.stamp, locked.notices
      ),
      filed AS (
        INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, payload)
        SELECT told.recipient_id, s.stamp - (s.notices - told.nth) * interval '1 microsecond', told.id, told.type,
          told.subject_id, told.payload
        FROM told
        JOIN stamped AS s ON s.user_id = told.recipient_id AND s.collection = 'notifications'
      )
      INSERT INTO notification_queue (notification_id, type, recipient_id, subject_id, payload)
      SELECT id, type, recipient_id, subject_id, payload
      FROM told
      ORDER BY place, recipient_id
      """
  }

  /// Each notice for each of its recipients, and as which of the change's for that recipient.
  private static func told(_ notices: [(audience: Audience, notice: Notice)]) -> SQL {
    let audiences = notices.map { $0.audience.name }
    let recipients = notices.map { $0.audience.recipient ?? $0.notice.subject }
    return """
      notices AS (
        SELECT type, subject_id, payload::jsonb, audience, recipient_id, place
        FROM unnest(
          \(notices.map(\.notice.type)), \(notices.map(\.notice.subject)), \(notices.map(\.notice.payload.text)),
          \(audiences), \(recipients)
        ) WITH ORDINALITY AS n (type, subject_id, payload, audience, recipient_id, place)
      ),
      told AS MATERIALIZED (
        SELECT uuid_v7() AS id, type, subject_id, payload, recipient_id, place,
          row_number() OVER (PARTITION BY recipient_id ORDER BY place) AS nth
        FROM (
          SELECT type, subject_id, payload, recipient_id, place FROM notices WHERE audience = 'one'
          UNION ALL
          SELECT n.type, n.subject_id, n.payload, i.user_id, n.place
          FROM notices AS n
          JOIN invitations AS i ON i.event_id = n.subject_id
          WHERE n.audience = 'guests' AND i.status <> 'declined' OR n.audience = 'goers' AND i.status = 'going'
          UNION ALL
          SELECT n.type, n.subject_id, n.payload, e.creator_id, n.place
          FROM notices AS n
          JOIN events AS e ON e.id = n.subject_id
          WHERE n.audience = 'goers' AND e.creator_id IS NOT NULL
        ) AS each
      )
      """
  }

  /// Locks all rows in one order, so that no two changes wait for each other crosswise. A row's stamp is made while its
  /// lock is held: the stamps of a collection rise in the order of the commits, and never repeat.
  private static func locking(_ touched: SQL) -> SQL {
    """
    locked AS MATERIALIZED (
      SELECT s.user_id, s.collection, touched.notices
      FROM (
        SELECT user_id, collection, sum(notices) AS notices
        FROM (
          \(touched)
        ) AS any_order
        GROUP BY user_id, collection
      ) AS touched
      JOIN collection_stamps AS s ON s.user_id = touched.user_id AND s.collection = touched.collection::collection
      ORDER BY s.user_id, s.collection
      FOR NO KEY UPDATE OF s
    )
    """
  }

  /// An inbox's stamp leaves room for a moment of its own for each notification. While the clock is behind, after it was
  /// set back, how far a stamp rises is chance: were it always the same, then after a restored backup another change
  /// could get the stamp of one that was lost.
  private static let stamping: SQL = """
    UPDATE collection_stamps AS s
    SET stamp = greatest(
      clock_timestamp(),
      s.stamp + greatest(locked.notices, 1) * interval '1 microsecond'
        + CASE WHEN s.stamp < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END)
    FROM locked
    WHERE s.user_id = locked.user_id AND s.collection = locked.collection
    """
}

extension Change.Audience {
  fileprivate var name: String {
    switch self {
    case .one: "one"
    case .guests: "guests"
    case .goers: "goers"
    }
  }

  fileprivate var recipient: UUID? {
    if case .one(let user) = self { user.rawValue } else { nil }
  }
}

extension Database {
  /// Runs a verb and commits it together with its stamps and notifications.
  ///
  /// Repeated from the start when PostgreSQL made it the victim of a deadlock: `body` must do nothing but talk to the
  /// database.
  func change<Value: Sendable>(_ body: (Change) async throws -> Value) async throws -> Value {
    let (value, wakesWorkers) = try await transaction(repeating: true) { transaction in
      let change = Change(transaction)
      return (try await body(change), change.finish())
    }
    if wakesWorkers { notify(NotificationQueue.channel) }
    return value
  }

  /// The same for a verb whose result is then read as the change leaves it, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(thenReading reading: SQL, _ body: (Change) async throws -> Void) async throws -> Rows {
    let (wakesWorkers, answers) = try await transactionWithAnswers(repeating: true) { transaction in
      let change = Change(transaction)
      try await body(change)
      // Before the stamps, whose locks many others wait for.
      transaction.atCommit(reading)
      return change.finish()
    }
    if wakesWorkers { notify(NotificationQueue.channel) }
    return answers[0]
  }
}
