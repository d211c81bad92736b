import Logging
import Synchronization

@testable import App

/// Keeps the statements that the service sends, without their parameters.
final class StatementLog: Sendable {
  /// The statements of each round trip.
  private let kept = Mutex<[[String]]>([])

  var logger: Logger {
    StatementHandler.logger("statements") { [self] in add($0) }
  }

  private func add(_ batch: [String]) {
    // Background work: polling of ended sessions and of migrations, and hints, which are sent a little later.
    let background = ["pg_current_snapshot()", "ended_xid", "pg_notify(", "FROM schema_migrations WHERE breaking"]
    let batch = batch.filter { statement in !background.contains(where: statement.contains) }
    if !batch.isEmpty { kept.withLock { $0.append(batch) } }
  }

  /// The statements since the last call.
  @discardableResult
  func take() -> [String] {
    takeRoundTrips().flatMap(\.self)
  }

  private func takeRoundTrips() -> [[String]] {
    kept.withLock { kept in
      let taken = kept
      kept = []
      return taken
    }
  }

  /// How often `action` waits for the server.
  func roundTrips(during action: () async throws -> Void) async rethrows -> Int {
    take()
    try await action()
    return takeRoundTrips().count
  }

  /// The statements that are sent while `action` runs.
  func statements(during action: () async throws -> Void) async rethrows -> [String] {
    take()
    try await action()
    return take()
  }
}
