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
    var notices: [(recipient: User.ID?, notice: Notice)] = []
    var mails: [Mail] = []
    var revocations: [AppleGrant] = []
    var erasures: [SQL] = []
  }

  private struct Touch: Hashable {
    let user: User.ID
    let collection: Collection
  }

  fileprivate init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await transaction.send(statements)
  }

  /// A statement whose answer is not needed: it leaves with the next one, or with COMMIT, and costs no round trip.
  func write(_ statement: SQL) {
    transaction.write(statement)
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

  /// Puts a notification into the recipient's queue.
  func notify(_ recipient: User.ID, _ notice: Notice) {
    hearers.withLock { $0.notices.append((recipient, notice)) }
  }

  /// Puts a notification about an event into the queue of everybody who is invited to it and has not declined.
  func notifyGuests(_ notice: Notice) {
    hearers.withLock { $0.notices.append((nil, notice)) }
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

  fileprivate func finish() {
    let hearers = hearers.withLock { $0 }
    if !hearers.touched.isEmpty || !hearers.touchedSets.isEmpty { transaction.atCommit(Self.stamping(hearers)) }
    if !hearers.notices.isEmpty { transaction.atCommit(Self.notifying(hearers.notices)) }
    for mail in hearers.mails { transaction.atCommit(mail.enqueueing) }
    for grant in hearers.revocations { transaction.atCommit(grant.enqueueing) }
    for erasure in hearers.erasures { transaction.atCommit(erasure) }
  }

  /// One statement for any number. What is about one subject is delivered in the order in which it is inserted.
  private static func notifying(_ notices: [(recipient: User.ID?, notice: Notice)]) -> SQL {
    """
    WITH notices AS (
      SELECT type, subject_id, payload::jsonb, recipient_id, is_for_guests, place
      FROM unnest(
        \(notices.map(\.notice.type)), \(notices.map(\.notice.subject)), \(notices.map(\.notice.payload.text)),
        \(notices.map { $0.recipient?.rawValue ?? $0.notice.subject }), \(notices.map { $0.recipient == nil })
      ) WITH ORDINALITY AS n (type, subject_id, payload, recipient_id, is_for_guests, place)
    )
    INSERT INTO notification_queue (type, recipient_id, subject_id, payload)
    SELECT type, recipient_id, subject_id, payload
    FROM (
      SELECT type, recipient_id, subject_id, payload, place FROM notices WHERE NOT is_for_guests
      UNION ALL
      SELECT n.type, i.user_id, n.subject_id, n.payload, n.place
      FROM notices AS n
      JOIN invitations AS i ON i.event_id = n.subject_id AND i.status <> 'declined'
      WHERE n.is_for_guests
    ) AS queued
    ORDER BY place, recipient_id
    """
  }

  /// Locks all rows in one order, so that no two changes wait for each other crosswise. A row's stamp is made while its
  /// lock is held: the stamps of a collection rise in the order of the commits, and never repeat.
  private static func stamping(_ hearers: Hearers) -> SQL {
    var pairs: SQL = """
      SELECT * FROM unnest(\(hearers.touched.map(\.user)), \(hearers.touched.map(\.collection)))
      """
    for (collection, users) in hearers.touchedSets {
      pairs += "\nUNION SELECT user_id, \(collection) FROM (\(users)) AS touched_users (user_id)"
    }
    return """
      WITH locked AS MATERIALIZED (
        SELECT s.user_id, s.collection
        FROM (\(pairs)) AS touched (user_id, collection)
        JOIN collection_stamps AS s ON s.user_id = touched.user_id AND s.collection = touched.collection::collection
        ORDER BY s.user_id, s.collection
        FOR NO KEY UPDATE OF s
      )
      UPDATE collection_stamps AS s
      SET stamp = greatest(clock_timestamp(), s.stamp + interval '1 microsecond')
      FROM locked
      WHERE s.user_id = locked.user_id AND s.collection = locked.collection
      """
  }
}

extension Change {
  /// Locks the users' rows in id order. `.share`: their names will enter somebody's list. `.update`: how they look, or
  /// how two of them stand to each other, is about to change.
  ///
  /// - Returns: those that exist.
  @discardableResult
  func lock(_ users: User.ID..., for strength: LockStrength) async throws -> Set<User.ID> {
    try await lock(users: users, for: strength)
  }

  @discardableResult
  func lock(users: [User.ID], for strength: LockStrength) async throws -> Set<User.ID> {
    let rows = try await rows(
      "SELECT id FROM users WHERE id = ANY(\(users)) ORDER BY id \(unescaped: strength.rawValue)")
    return Set(try rows.map { try $0["id"] })
  }

  enum LockStrength: String {
    case share = "FOR SHARE"
    case update = "FOR NO KEY UPDATE"
  }
}

extension Database {
  /// Runs a verb and commits it together with its stamps and notifications.
  ///
  /// Repeated from the start when PostgreSQL made it the victim of a deadlock: `body` must do nothing but talk to the
  /// database.
  func change<Value: Sendable>(_ body: (Change) async throws -> Value) async throws -> Value {
    try await transaction(repeating: true) { transaction in
      let change = Change(transaction)
      let value = try await body(change)
      change.finish()
      return value
    }
  }

  /// The same for a verb whose result is then read as the change leaves it, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(thenReading reading: SQL, _ body: (Change) async throws -> Void) async throws -> Rows {
    try await transaction(repeating: true, endingWith: reading) { transaction in
      let change = Change(transaction)
      try await body(change)
      change.finish()
    }
  }
}
