import Logging
import Synchronization

@testable import App

/// Keeps the statements that the service sends, without their parameters.
final class StatementLog: Sendable {
  private let kept = Mutex<[String]>([])

  var logger: Logger {
    StatementHandler.logger("statements") { [self] in $0.forEach(add) }
  }

  private func add(_ statement: String) {
    // Background work: polling of ended sessions and of migrations, and hints, which are sent a little later.
    let background = ["pg_current_snapshot()", "ended_xid", "pg_notify(", "FROM schema_migrations WHERE breaking"]
    if background.contains(where: statement.contains) { return }
    kept.withLock { $0.append(statement) }
  }

  /// The statements since the last call.
  @discardableResult
  func take() -> [String] {
    kept.withLock { kept in
      let taken = kept
      kept = []
      return taken
    }
  }

  /// The statements that are sent while `action` runs.
  func statements(during action: () async throws -> Void) async rethrows -> [String] {
    take()
    try await action()
    return take()
  }
}
