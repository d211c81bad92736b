import App
import ArgumentParser
import Postgres

extension AsyncParsableCommand {
  /// Runs `body` with the database, for a command that does one thing and ends.
  ///
  /// - Parameters:
  ///   - name: the name in `pg_stat_activity`.
  ///   - configuration: nil reads it. A command reads it once, because its secrets are forgotten then.
  func withDatabase(
    _ name: String, _ configuration: MusterConfiguration? = nil, _ body: (Database) async throws -> Void
  ) async throws {
    let known: MusterConfiguration
    if let configuration { known = configuration } else { known = try await .loadWithWarnings(for: .tool) }
    let database = try Database(known.database(name, logger: makeLogger()))
    defer { database.close() }
    try await body(database)
  }
}
