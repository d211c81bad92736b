import Foundation
import Postgres
import Synchronization

/// A transaction that collects stamps, notices and mails, and writes them at commit. Every write takes one, so there is
/// no change without its stamps and its queue rows, and none of these without their change.
///
/// Locks are taken in one order everywhere: users, events, the rest, stamps. A lock that closes a set of users is a
/// statement of its own before the one that reads the set: a statement that waits for a row still sees the other tables
/// as they were before it waited.
public final class Change: Querying {
  private let transaction: Transaction
  private let effects = Mutex(Effects())

  /// What is written at commit, besides the change itself.
  private struct Effects {
    var touches: [Collection: Touched] = [:]
    var notices: [Queued] = []
    var mails: [Mail] = []
    var revocations: [AppleGrant] = []
    var erasures: [SQL] = []
  }

  private enum Queued {
    case addressed(NotificationQueue.Addressed)
    /// For the users in a query's result.
    case statement(SQL)
  }

  /// The users whose stamp of one collection moves.
  private struct Touched {
    var users: Set<User.ID> = []
    var queries: [SQL] = []
  }

  fileprivate init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await transaction.send(statements)
  }

  /// Runs a statement whose result is not needed: it leaves with the next one, or with COMMIT, and costs no round trip.
  func write(_ statement: SQL) throws {
    try transaction.write(statement)
  }

  /// Records that these collections' GETs answer differently for these users from this commit on.
  func touch(_ collections: Collection..., of users: User.ID...) {
    effects.withLock { effects in
      for collection in collections { effects.touches[collection, default: Touched()].users.formUnion(users) }
    }
  }

  /// The same for a set of users of any size, which stays in the database.
  ///
  /// - Parameter users: a query with one column of user ids. It sees everything that this change has done.
  func touch(_ collections: Collection..., ofUsersIn users: SQL) {
    effects.withLock { effects in
      for collection in collections { effects.touches[collection, default: Touched()].queries.append(users) }
    }
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

  /// Queues notices that name no one, each about another subject and for users of its own.
  ///
  /// - Parameter pairs: a query of `(subject_id, user_id)`. It sees everything that this change has done.
  func notify(usersIn pairs: SQL, aboutEach notices: [Notice], by actor: User.ID) {
    guard !notices.isEmpty else { return }
    effects.withLock {
      $0.notices.append(.statement(NotificationQueue.insert(notices, by: actor, forUsersIn: pairs)))
    }
  }

  /// Queues a mail.
  func mail(_ mail: Mail) {
    effects.withLock { $0.mails.append(mail) }
  }

  /// Queues the revocation of what Apple granted. The row does not say to whom.
  func revoke(_ grant: AppleGrant) {
    effects.withLock { $0.revocations.append(grant) }
  }

  /// Deletes rows last, after the stamps: the sets of users that are touched are read from them.
  ///
  /// - Parameter rows: a DELETE of rows that this change has locked, or that only a transaction with its locks changes.
  func erase(_ rows: SQL) {
    effects.withLock { $0.erasures.append(rows) }
  }

  /// Has everything that was collected leave with COMMIT. The stamps take the last locks: nothing after them waits.
  ///
  /// - Returns: whether a worker has something to do now.
  fileprivate func finish() -> Bool {
    let effects = effects.withLock { $0 }
    for insert in Self.inserts(effects.notices) { transaction.atCommit(insert) }
    for mail in effects.mails { transaction.atCommit(mail.enqueueing) }
    for grant in effects.revocations { transaction.atCommit(grant.enqueueing) }
    if let stamping = Self.stamping(effects.touches) { transaction.atCommit(stamping) }
    for erasure in effects.erasures { transaction.atCommit(erasure) }
    return !effects.notices.isEmpty || !effects.mails.isEmpty || !effects.revocations.isEmpty
  }

  /// Notices in their order, those in a row that are addressed as one statement.
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

  /// One pass over all touched users in id order, so that no two changes wait for each other crosswise. A stamp is made
  /// while its row's lock is held, so the stamps of a collection rise in commit order and never repeat.
  private static func stamping(_ touches: [Collection: Touched]) -> SQL? {
    let touched = Collection.allCases.compactMap { collection in touches[collection].map { (collection, $0) } }
    guard !touched.isEmpty else { return nil }
    var users: SQL = ""
    var columns: SQL = ""
    var flags: SQL = ""
    var stamps: SQL = ""
    for (index, (collection, who)) in touched.enumerated() {
      let number = Int32(index)
      let column: SQL = "\(unescaped: collection.column)"
      var queries = who.queries
      if !who.users.isEmpty { queries.append("SELECT unnest(\(Array(who.users)))") }
      for query in queries {
        if index > 0 || users.text != "" { users += "\nUNION ALL " }
        users += "SELECT user_id, \(unescaped: "\(number)") FROM (\(query)) AS touched_users (user_id)"
      }
      columns += ", \(column)"
      flags += ", CASE WHEN bool_or(place = \(unescaped: "\(number)")) THEN now() ELSE '-infinity' END"
      if index > 0 { stamps += ",\n  " }
      stamps +=
        "\(column) = CASE WHEN excluded.\(column) = '-infinity' THEN s.\(column) ELSE \(Stamps.next(column)) END"
    }
    // The row exists as long as the user does. For a deleted user, the insert violates the foreign key, and the change
    // is repeated: see `Database.change`. The inserted values only tell which columns to move.
    return """
      INSERT INTO user_stamps AS s (user_id\(columns))
      SELECT user_id\(flags)
      FROM (
      \(users)
      ) AS touched (user_id, place)
      WHERE user_id IS NOT NULL
      GROUP BY user_id
      ORDER BY user_id
      ON CONFLICT (user_id) DO UPDATE SET
        \(stamps)
      """
  }
}

extension Database {
  /// Runs a verb and commits it together with its stamps and notices.
  ///
  /// Repeated from the start if PostgreSQL ended it as the victim of a deadlock, or if a user whom it touches was deleted
  /// meanwhile: `body` must do nothing but talk to the database.
  func change<Value: Sendable>(_ body: (Change) async throws -> Value) async throws -> Value {
    let (value, wakesWorkers) = try await transaction(repeating: true, orAfter: Stamps.isOfDeletedUser) { transaction in
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
    let (wakesWorkers, results) = try await transactionWithAnswers(repeating: true, orAfter: Stamps.isOfDeletedUser) {
      transaction in
      let change = Change(transaction)
      try await body(change)
      // Before the stamps, whose locks many others wait for.
      transaction.atCommit(reading)
      return change.finish()
    }
    if wakesWorkers { notify(NotificationQueue.channel) }
    return results[0]
  }
}
