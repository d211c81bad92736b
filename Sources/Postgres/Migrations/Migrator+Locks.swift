import Foundation

extension Migrator {
  /// A statement did not get a lock in time. The description names the statement and the process that held the lock.
  struct LockFailure: Error, CustomStringConvertible {
    let description: String
  }

  /// "muster" in ASCII. Any constant works if all programs use the same.
  private static let lockKey: Int64 = 0x6d75_7374_6572
  /// The maximum wait for another deploy's migration, in seconds.
  private static let patience = 600

  /// Polls for the advisory lock. For a lock held by the transaction, each attempt uses a new transaction. A blocking
  /// wait, or a transaction that stays open between two attempts, would hold a snapshot. CREATE INDEX CONCURRENTLY,
  /// which another program runs under the same lock, would wait for that snapshot in turn.
  private func lock(_ connection: ScriptConnection, inTransaction: Bool) throws {
    let end = ContinuousClock.now + .seconds(Self.patience)
    while true {
      if inTransaction { try connection.script("BEGIN ISOLATION LEVEL READ COMMITTED") }
      let function: SQL = inTransaction ? "pg_try_advisory_xact_lock" : "pg_try_advisory_lock"
      if try connection.rows("SELECT \(function)(\(Self.lockKey))")[0][0] == true { return }
      if inTransaction { try connection.script("ROLLBACK") }
      guard .now < end else { throw Refusal(description: "another program has been migrating for too long") }
      usleep(50_000)
    }
  }

  /// Runs `body` in its own transaction, which holds the advisory lock. Retries while a statement does not get a lock.
  ///
  /// - Parameter before: work that cannot run in a transaction. It runs once, before `body`, while the session holds
  ///   the same lock. nil if everything can run in the transaction.
  @discardableResult
  func exclusively(
    _ connection: ScriptConnection, before: (() throws -> Void)? = nil, warning: (String) -> Void = { _ in },
    _ body: () throws -> Bool
  ) throws -> Bool {
    let end = ContinuousClock.now + lockPatience
    var pause = Duration.milliseconds(250)
    while true {
      do {
        return try exclusivelyOnce(connection, before: before, body)
      } catch let failure as LockFailure {
        guard before == nil, .now + pause < end else {
          let rest =
            before == nil
            ? "its transaction was rolled back"
            : "an invalid index may remain: `SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid` lists it"
          throw Refusal(description: "\(failure): gave up after \(lockPatience), and \(rest)")
        }
        warning("\(failure): trying again")
        Thread.sleep(forTimeInterval: pause / .seconds(1))
        pause = min(pause * 2, .seconds(5))
      }
    }
  }

  private func exclusivelyOnce(
    _ connection: ScriptConnection, before: (() throws -> Void)?, _ body: () throws -> Bool
  ) throws -> Bool {
    do {
      try connection.script("SET lock_timeout = \((before == nil ? lockTimeout : lockPatience).wholeMilliseconds)")
      if let before {
        try lock(connection, inTransaction: false)
        try before()
      }
      try lock(connection, inTransaction: true)
      let result = try body()
      try connection.script("COMMIT; SELECT pg_advisory_unlock_all()")
      return result
    } catch {
      try? connection.script("ROLLBACK; SELECT pg_advisory_unlock_all()")
      throw error
    }
  }
}

/// The processes that a migration waits for. A second connection queries them during the wait, because the server does
/// not know them afterwards. On a busy machine, one attempt may be too short to open it.
final class Blockers {
  private let url: String
  private let waiter: Int32
  private var observer: ScriptConnection?
  /// The most recent blockers, described for an operator.
  private(set) var found: String?

  init(of connection: ScriptConnection, url: String) {
    self.url = url
    waiter = connection.processID
  }

  func look() {
    do {
      let observer = try observer ?? ScriptConnection.open(url, applicationName: "migrate")
      self.observer = observer
      let blockers: [String] = try observer.rows(
        """
        SELECT format(
          'process %s (%s, %s, in its transaction for %s s)', pid, coalesce(nullif(application_name, ''), 'unnamed'),
          coalesce(state, backend_type), coalesce(extract(epoch FROM clock_timestamp() - xact_start)::bigint, 0))
        FROM pg_stat_activity
        WHERE pid = ANY(pg_blocking_pids(\(waiter)))
        ORDER BY xact_start
        """
      ).map { try $0[0] }
      if !blockers.isEmpty { found = blockers.joined(separator: ", ") }
    } catch {
      // The migration continues without knowing its blockers.
      observer = nil
    }
  }
}
