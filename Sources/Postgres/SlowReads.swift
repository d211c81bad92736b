/// Reads on exclusive connections: see ``Database/slow``.
public struct SlowReads: Querying {
  let database: Database

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.repeated(true, on: database.slowPool, for: statements) { try await $0.send(statements) }.value
  }

  /// Runs several reads in one read-only transaction. With ``IsolationLevel/repeatableRead``, they see one snapshot.
  ///
  /// The body may write with other transactions of the same database. It runs only once.
  public func transaction<Value: Sendable>(
    isolation: IsolationLevel? = nil, _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await database.repeated(false, on: database.slowPool, isolation: isolation, body).value
  }
}
