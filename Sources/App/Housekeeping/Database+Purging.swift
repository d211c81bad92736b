import Postgres

extension Database {
  /// Deletes the rows whose time has come, oldest first. Skips rows that another transaction has locked, so that
  /// neither waits for the other.
  ///
  /// - Parameters:
  ///   - key: the column of the primary key.
  ///   - column: the column with the time.
  ///   - time: rows with this time or an earlier one are deleted.
  ///   - limit: the maximum number of rows.
  /// - Returns: the number of deleted rows.
  func purge(_ table: SQL, key: SQL = "id", by column: SQL, upTo time: SQL, atMost limit: Int) async throws -> Int {
    try await batch(
      """
      DELETE FROM \(table)
      WHERE \(key) IN (
        SELECT \(key) FROM \(table)
        WHERE \(column) <= \(time)
        ORDER BY \(column)
        LIMIT \(limit)
        FOR UPDATE SKIP LOCKED
      )
      """)[0].affected
  }
}
