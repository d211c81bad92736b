import Postgres

@testable import App

/// Holds the next change just before its COMMIT, with all its locks. Later changes pass, or wait for its locks.
final class Pause: Sendable {
  private let database: Database
  private let gate: AsyncStream<Void>.Continuation
  private let holding: Task<Void, any Error>

  /// Begins the pause.
  init(in app: TestApp) async throws {
    try await ScriptConnection.run(app.databaseURL, timeout: .seconds(60)) {
      try $0.script(
        """
        CREATE OR REPLACE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF pg_try_advisory_xact_lock(1) THEN PERFORM pg_advisory_xact_lock(2); END IF;
          RETURN NULL;
        END
        $$;
        CREATE OR REPLACE TRIGGER pause AFTER UPDATE ON user_stamps
        FOR EACH STATEMENT EXECUTE FUNCTION pause();
        """)
    }
    let database = try Database(Database.Configuration(url: app.databaseURL))
    let begun = AsyncStream.makeStream(of: Void.self)
    let gate = AsyncStream.makeStream(of: Void.self)
    self.database = database
    self.gate = gate.continuation
    holding = Task {
      // Even after an error, so that `init` returns and ``end()`` throws.
      defer { begun.continuation.finish() }
      try await database.transaction { transaction in
        try await transaction.rows("SELECT pg_advisory_xact_lock(2)")
        begun.continuation.finish()
        for await _ in gate.stream {}
      }
    }
    for await _ in begun.stream {}
  }

  func end() async throws {
    gate.finish()
    try await holding.value
    database.close()
  }
}
