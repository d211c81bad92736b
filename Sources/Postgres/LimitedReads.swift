/// Reads with a time limit of their own: see ``Database/limited(to:)``.
public struct LimitedReads: Querying {
  let database: Database
  let limit: Duration

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.send(statements, within: limit)
  }
}
