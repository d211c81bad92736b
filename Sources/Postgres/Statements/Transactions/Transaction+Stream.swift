extension Transaction {
  /// Streams a large result through a cursor. Other statements may run between its parts.
  ///
  ///     for try await row in transaction.stream("SELECT id FROM events") { ... }
  ///
  /// - Parameters:
  ///   - sql: a statement that returns rows.
  ///   - size: the number of rows that are fetched together, and so are in memory.
  public func stream(_ sql: SQL, partsOf size: Int = RowStream.usualSize) -> RowStream {
    RowStream(transaction: self, sql: sql, size: size)
  }

  /// A number for a cursor that no other one of the transaction has.
  func nextCursor() -> Int {
    state.withLock { state in
      state.cursors += 1
      return state.cursors
    }
  }
}
