import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// Detects that a newer release has applied a breaking migration, after which this process must stop soon. A process
/// checks this once when it starts, and this service checks it every second.
public final class SchemaWatch: Service {
  private static let interval = Duration.seconds(1)

  private let database: Database
  private let logger: Logger
  private let versions = Resources.migrations.map(\.version)
  private let unknown = Mutex<[String]>([])

  init(database: Database, logger: Logger) {
    self.database = database
    self.logger = logger
  }

  /// Breaking migrations in the database that this release does not know.
  var breaking: [String] { unknown.withLock { $0 } }

  /// Polls until it is cancelled or shut down. While the database is unavailable, the last result stays valid.
  public func run() async {
    await cancelWhenGracefulShutdown { [self] in
      while !Task.isCancelled {
        do {
          try await read()
        } catch {
          // The readiness check queries the database itself.
          logger.debug("the migrations cannot be read", metadata: ["error": "\(error)"])
        }
        // Throws only on cancellation, which ends the loop.
        try? await Task.sleep(for: Self.interval)
      }
    }
  }

  func read() async throws {
    let rows = try await database.rows(
      "SELECT name FROM schema_migrations WHERE breaking AND version <> ALL(\(versions)) ORDER BY version")
    let names: [String] = try rows.map { try $0[0] }
    let isNew = unknown.withLock { unknown in
      defer { unknown = names }
      return unknown != names
    }
    guard isNew, !names.isEmpty else { return }
    logger.error(
      "the database has breaking migrations that this release does not know: stop this process",
      metadata: ["migrations": "\(names.joined(separator: ", "))"])
  }
}
