/// Reads on exclusive connections: see ``Database/slow``.
public struct SlowReads: Querying {
  let database: Database
  var limit: Duration?

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.repeated(true, on: database.slowPool, for: statements) { transaction in
      if let limit { try transaction.limitStatements(to: limit) }
      return try await transaction.send(statements)
    }.value
  }

  /// The same, with another time limit for each statement, enforced by the server. It may be longer than
  /// ``Database/Configuration/slowStatementTimeout``.
  public func limited(to limit: Duration) -> SlowReads {
    SlowReads(database: database, limit: limit)
  }

  /// Runs several reads in one read-only transaction. With ``IsolationLevel/repeatableRead``, they see one snapshot.
  ///
  /// The body may write with other transactions of the same database. It runs only once.
  public func transaction<Value: Sendable>(
    isolation: IsolationLevel? = nil, _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await database.repeated(false, on: database.slowPool, isolation: isolation) { transaction in
      if let limit { try transaction.limitStatements(to: limit) }
      return try await body(transaction)
    }.value
  }

  /// Reads a large result in parts, so that it never is in memory as a whole:
  ///
  ///     try await database.slow.stream("SELECT id, title FROM events") { rows in
  ///       for try await row in rows { try write(row["id"], row["title"]) }
  ///     }
  ///
  /// The connection is taken until the body ends. Time limits apply to each part, so the whole may take longer.
  ///
  /// - Parameters:
  ///   - sql: a statement that returns rows.
  ///   - size: the number of rows of each part.
  ///   - body: reads the rows.
  public func stream<Value: Sendable>(
    _ sql: SQL, partsOf size: Int = RowStream.usualSize, _ body: (RowStream) async throws -> Value
  ) async throws -> Value {
    try await transaction { transaction in
      // The planner expects that only a tenth of a cursor's rows are read, unless it knows better.
      try transaction.write("SELECT set_config('cursor_tuple_fraction', '1', true)")
      return try await body(transaction.stream(sql, partsOf: size))
    }
  }
}
