import Foundation

extension Migrator {
  /// A statement did not get a lock in time. Names both, and the process that held the lock.
  struct LockFailure: Error, CustomStringConvertible {
    let description: String
  }

  /// "muster" in ASCII: any constant serves, as long as all use the same.
  private static let lockKey: Int64 = 0x6d75_7374_6572
  /// How long one migration waits for another deploy's to end, in seconds.
  private static let patience = 600

  /// Asks for the advisory lock again and again, in a transaction of its own each time for a lock that is the
  /// transaction's. A statement that waits for it, and a transaction that sleeps between two attempts, would hold a
  /// snapshot, for which CREATE INDEX CONCURRENTLY under the same lock would wait in turn.
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

  /// Runs `body` in a transaction of its own that holds the advisory lock, again and again while it does not get a lock.
  /// What cannot run in a transaction runs first, once, under the same lock held by the session.
  ///
  /// - Parameter before: nil where everything can run in the transaction.
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
            ? "nothing of it was applied"
            : "an invalid index may remain: `SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid` lists it"
          throw Refusal(description: "\(failure): given up after \(lockPatience), and \(rest)")
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
