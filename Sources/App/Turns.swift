import Postgres

/// Locks that belong to no row. Transactions that take one with the same key run one after the other, each until its end.
///
/// PostgreSQL has advisory locks for this. On a portable database, a transaction locks one of the rows of `turns`. Two
/// keys may share a row: one then waits for the other, or is repeated after a deadlock.
enum Turns {
  /// The number of rows, a power of two.
  private static let slots: Int32 = 1024

  /// - Parameters:
  ///   - purpose: distinguishes keys of different meanings.
  ///   - keys: a query with one column of integers, in an order that is the same everywhere.
  static func taking(_ purpose: Int32, atEach keys: SQL, isPortable: Bool) -> SQL {
    isPortable
      ? """
      SELECT slot FROM turns
      WHERE slot IN (SELECT (turn.key # \(purpose)::integer) & \(slots - 1) FROM (\(keys)) AS turn (key))
      ORDER BY slot
      FOR UPDATE
      """
      : "SELECT pg_advisory_xact_lock(\(purpose), turn.key) FROM (\(keys)) AS turn (key)"
  }
}

extension Change {
  /// Waits for the changes that have taken this turn before. Sent with the next statement.
  ///
  /// - Parameter key: an integer in SQL.
  func takeTurn(_ purpose: Int32, at key: SQL) throws {
    try write(Turns.taking(purpose, atEach: "SELECT \(key)", isPortable: isPortable))
  }
}
