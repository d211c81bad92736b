/// Reads on exclusive connections: see ``Database/slow``.
public struct SlowReads: Querying {
  let database: Database

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.readSlowly(statements)
  }
}
