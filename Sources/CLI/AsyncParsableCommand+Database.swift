import App
import ArgumentParser
import Postgres

extension AsyncParsableCommand {
  /// Runs `body` with the database, for a command that does one thing and ends.
  ///
  /// - Parameter name: the name in `pg_stat_activity`.
  func withDatabase(_ name: String, _ body: (Database) async throws -> Void) async throws {
    let database = try Database(
      try await MusterConfiguration.loadWithWarnings(for: .tool).database(name, logger: makeLogger()))
    defer { database.close() }
    try await body(database)
  }
}
