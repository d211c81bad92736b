/// Reads on exclusive connections: see ``Database/slow``.
public struct SlowReads: Querying {
  let database: Database
  var limit: Duration?

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.readSlowly(statements, limit: limit)
  }

  /// The same, with another time limit for each statement, enforced by the server. It may be longer than
  /// ``Database/Configuration/slowStatementTimeout``.
  public func limited(to limit: Duration) -> SlowReads {
    SlowReads(database: database, limit: limit)
  }
}
