import Postgres

@testable import App

extension TestApp {
  /// Creates `waited()`, a condition that is true. A statement with this condition waits between its snapshot and its
  /// locks while ``interrupting(_:with:)`` runs its interruption.
  func createWaiting() async throws {
    try await database.execute(
      """
      CREATE FUNCTION waited() RETURNS boolean LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(11);
        RETURN true;
      END
      $$
      """)
  }

  /// Starts a statement with the condition `waited()`, and lets it continue after the interruption.
  func interrupting<Value: Sendable>(
    _ statement: @escaping @Sendable () async throws -> Value, with interruption: () async throws -> Void
  ) async throws -> Value {
    let holder = try Database(Database.Configuration(url: databaseURL))
    defer { holder.close() }
    let waiting = try await holder.transaction { transaction in
      try await transaction.rows("SELECT pg_advisory_xact_lock(11)")
      let waiting = Task(operation: statement)
      try await waitForLocks(1)
      try await interruption()
      return waiting
    }
    return try await waiting.value
  }
}
