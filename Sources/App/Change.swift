import Foundation
import Postgres
import Synchronization

/// A transaction that collects stamps, notices and mails, and writes them at commit. Every write uses one, so a change
/// is never saved without its stamps and queue rows, nor they without the change.
///
/// Locks are taken in one order everywhere: users, events, the rest, stamps. A lock that freezes a set of users is a
/// statement of its own before the one that reads the set: a statement that waits for a row still sees the other tables
/// as they were before it waited.
public final class Change: Querying {
  private let transaction: Transaction
  private let effects = Mutex(Effects())

  /// The rows that are written at commit, besides the change itself.
  private struct Effects {
    var touches = Touches()
    var notices: [Queued] = []
    var mails: [Mail] = []
    var revocations: [AppleGrant] = []
    var erasures: [SQL] = []
    var wakesWorkers = false
    var hasQuietWrites = false

    var areEmpty: Bool {
      touches.isEmpty && notices.isEmpty && mails.isEmpty && revocations.isEmpty && erasures.isEmpty && !hasQuietWrites
    }
  }

  private enum Queued {
    case addressed(NotificationQueue.Addressed)
    /// For the users in a query's result.
    case statement(SQL)
  }

  fileprivate init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  var isPortable: Bool { transaction.isPortable }

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await transaction.send(statements)
  }

  /// Runs a statement whose result is not needed. It is sent with the next statement or with COMMIT, and costs no round
  /// trip.
  func write(_ statement: SQL) throws {
    try transaction.write(statement)
  }

  /// Records that the GETs of these collections return something different to these users from this commit on.
  func touch(_ collections: Collection..., of users: User.ID...) {
    let bits = collections.reduce(0) { $0 | $1.bit }
    effects.withLock { effects in
      for user in users { effects.touches.users[user, default: 0] |= bits }
    }
  }

  /// The same for a set of users of any size, which stays in the database.
  ///
  /// - Parameter users: a query with one column of user ids. It sees everything that this change has done.
  func touch(_ collections: Collection..., ofUsersIn users: SQL) {
    let bits = collections.reduce(0) { $0 | $1.bit }
    effects.withLock { $0.touches.queries.append((users, bits)) }
  }

  /// Queues a notice.
  func notify(_ recipients: User.ID..., about notice: Notice) {
    notify(recipients, about: notice)
  }

  func notify(_ recipients: [User.ID], about notice: Notice) {
    let addressed = NotificationQueue.Addressed(recipients: recipients, notice: notice)
    effects.withLock { $0.notices.append(.addressed(addressed)) }
  }

  /// Queues a notice for a set of users, which is read at commit, under the change's locks.
  ///
  /// - Parameter recipients: a query with one column of user ids. It sees everything that this change has done.
  func notify(usersIn recipients: SQL, about notice: Notice) {
    effects.withLock { $0.notices.append(.statement(NotificationQueue.insert(notice, forUsersIn: recipients))) }
  }

  /// Queues notices without a person, each about a different subject and for its own recipients.
  ///
  /// - Parameter pairs: a query of `(subject_id, user_id)`. It sees everything that this change has done.
  func notify(usersIn pairs: SQL, aboutEach notices: [Notice], by actor: User.ID? = nil) {
    guard !notices.isEmpty else { return }
    effects.withLock {
      $0.notices.append(.statement(NotificationQueue.insert(notices, by: actor, forUsersIn: pairs)))
    }
  }

  /// Queues a mail.
  func mail(_ mail: Mail) {
    effects.withLock { $0.mails.append(mail) }
  }

  /// Queues the revocation of an Apple grant. The row does not say whose grant it was.
  func revoke(_ grant: AppleGrant) {
    effects.withLock { $0.revocations.append(grant) }
  }

  /// Wakes the workers after the commit, for work that is in no queue.
  func wakeWorkers() {
    effects.withLock { $0.wakesWorkers = true }
  }

  /// Records that rows have changed that no collection shows.
  func noteQuietWrite() {
    effects.withLock { $0.hasQuietWrites = true }
  }

  /// Whether the verb has found everything as it should be. Verbs that change rows touch a collection, or call
  /// ``noteQuietWrite()``.
  var hasChangedNothing: Bool { effects.withLock { $0.areEmpty } }

  /// Deletes rows last, after the stamps, because the sets of touched users are read from these rows.
  ///
  /// - Parameter rows: a DELETE of rows that this change has locked, or that only a transaction with the same locks
  ///   changes.
  func erase(_ rows: SQL) {
    effects.withLock { $0.erasures.append(rows) }
  }

  /// Sends everything that was collected with COMMIT. The stamps take the last locks, so nothing after them waits.
  ///
  /// - Returns: whether a worker has something to do now.
  fileprivate func finish() -> Bool {
    let effects = effects.withLock { $0 }
    let queues = !effects.notices.isEmpty || !effects.mails.isEmpty || !effects.revocations.isEmpty
    // The queues' rows take it as the default of their column.
    if queues, let trace = Trace.current {
      transaction.atCommit("SELECT set_config('muster.trace', \(trace.stored), true)")
    }
    for insert in Self.inserts(effects.notices) { transaction.atCommit(insert) }
    for mail in effects.mails { transaction.atCommit(mail.enqueueing) }
    for grant in effects.revocations { transaction.atCommit(grant.enqueueing) }
    if let stamping = effects.touches.stamping { transaction.atCommit(stamping) }
    for erasure in effects.erasures { transaction.atCommit(erasure) }
    return queues || effects.wakesWorkers
  }

  /// The notices in their order. Consecutive addressed notices share one statement.
  private static func inserts(_ notices: [Queued]) -> [SQL] {
    var inserts: [SQL] = []
    var addressed: [NotificationQueue.Addressed] = []
    func flush() {
      if let insert = NotificationQueue.insert(addressed) { inserts.append(insert) }
      addressed = []
    }
    for notice in notices {
      switch notice {
      case .addressed(let one): addressed.append(one)
      case .statement(let statement):
        flush()
        inserts.append(statement)
      }
    }
    flush()
    return inserts
  }
}

extension Database {
  /// Waits until the synchronous standby, if there is one, has confirmed the commit of a row that was read: the lock
  /// makes this commit follow it. For repeated writes that find outside of a transaction that they are done.
  ///
  /// - Parameter row: a SELECT of the row.
  func confirm(_ row: SQL) async throws {
    try await batch("\(row) FOR KEY SHARE")
  }

  /// Runs a verb and commits it together with its stamps and notices.
  ///
  /// Repeats the verb from the start if PostgreSQL ended the transaction as the victim of a deadlock, or if a user whom
  /// it touches was deleted meanwhile. `body` must have no effects outside the database.
  func change<Value: Sendable>(_ body: (Change) async throws -> Value) async throws -> Value {
    let (value, wakesWorkers) = try await transaction(repeating: true, orAfter: Stamps.isOfDeletedUser) { transaction in
      let change = Change(transaction)
      return (try await body(change), change.finish())
    }
    if wakesWorkers { notify(NotificationQueue.channel) }
    return value
  }

  /// The same for a verb after which `reading` is read, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(thenReading reading: SQL, _ body: (Change) async throws -> Void) async throws -> Rows {
    let (wakesWorkers, results) = try await transactionWithResults(repeating: true, orAfter: Stamps.isOfDeletedUser) {
      transaction in
      let change = Change(transaction)
      try await body(change)
      // Before the stamps, because many other changes wait for their locks.
      transaction.atCommit(reading)
      return change.finish()
    }
    if wakesWorkers { notify(NotificationQueue.channel) }
    return results[0]
  }
}

extension Change {
  /// Locks the users' rows in id order. Use `.share` if their names will enter another user's list, and `.update` if
  /// their profiles, or the relation between two of them, will change.
  ///
  /// - Returns: the users that exist.
  func lock(_ users: User.ID..., for strength: LockStrength) async throws -> Set<User.ID> {
    try await lock(users: users, for: strength)
  }

  func lock(users: [User.ID], for strength: LockStrength) async throws -> Set<User.ID> {
    try takeTurns(at: users, for: strength)
    return Set(try await rows(Self.locking(users, for: strength)).map { try $0["id"] })
  }

  /// The same for a verb that does not ask which users exist. The lock is sent with the next statement, which sees what
  /// was committed before the lock was taken, and costs no round trip.
  func lockAhead(_ users: User.ID..., for strength: LockStrength) throws {
    try lockAhead(users: users, for: strength)
  }

  func lockAhead(users: [User.ID], for strength: LockStrength) throws {
    try takeTurns(at: users, for: strength)
    try write(Self.locking(users, for: strength))
  }

  private static func locking(_ users: [User.ID], for strength: LockStrength) -> SQL {
    "SELECT id FROM users WHERE id = ANY(\(users)) ORDER BY id \(unescaped: strength.rawValue)"
  }

  enum LockStrength: String {
    case share = "FOR SHARE"
    case update = "FOR NO KEY UPDATE"
  }

  /// Takes the advisory locks that come before the locks of users' rows. They are sent with the next statement, which
  /// locks the rows, and cost no round trip.
  ///
  /// Row locks alone are unfair: PostgreSQL lets each new FOR SHARE overtake a waiting FOR NO KEY UPDATE, so a flood of
  /// friend requests delays the block that would end it. Advisory locks queue in the order of the requests: an
  /// exclusive lock waits only for locks that were requested before it.
  ///
  /// Two users may have the same key. One then waits for the other, which is harmless. Keys are locked in their own
  /// order, and before all rows, so that no two changes deadlock.
  ///
  /// A portable database may have no advisory locks. Its row locks are as fair as the engine makes them.
  func takeTurns(at users: [User.ID], for strength: LockStrength) throws {
    if isPortable { return }
    let keys = Set(users.map(\.turnKey)).sorted()
    switch strength {
    case .update:
      try write("SELECT pg_advisory_xact_lock(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share where keys.count <= Self.maximumTurns:
      try write("SELECT pg_advisory_xact_lock_shared(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share:
      // Only keys whose exclusive lock is held or requested. For the other keys, nothing waits.
      try write(
        """
        SELECT pg_advisory_xact_lock_shared(\(Self.turns), key)
        FROM unnest(\(keys)) AS key
        WHERE key IN (
          SELECT objid::integer FROM pg_locks
          WHERE locktype = 'advisory' AND classid = \(Self.turns)::oid AND mode = 'ExclusiveLock'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        )
        """)
    }
  }

  /// The first half of all keys: "must" in ASCII. The key of the migrations' lock has one part, so it never equals
  /// these.
  private static let turns: Int32 = 0x6d75_7374
  /// PostgreSQL's shared table of locks has room for 64 locks per transaction by default.
  private static let maximumTurns = 32
}

extension User.ID {
  /// 31 of an id's random bits.
  fileprivate var turnKey: Int32 {
    withUnsafeBytes(of: rawValue.uuid) {
      Int32(bigEndian: $0.loadUnaligned(fromByteOffset: 12, as: Int32.self)) & .max
    }
  }
}
