import Dispatch
import Foundation
import Logging
import Postgres
import Synchronization

@testable import App

/// Looks for stamps that stay locked while PostgreSQL waits for the service.
///
/// Its logger gets each batch of statements when the results have arrived, before the service gets them. Until the
/// logger returns, the service cannot continue the transaction. So PostgreSQL has the locks that it would have if the
/// service were slow.
final class StampLockWatch: Sendable {
  private struct State: Sendable {
    var databaseURL: String?
    var looks = 0
    var faults: [String] = []
  }

  private let state = Mutex(State())

  var logger: Logger {
    StatementHandler.logger("stamps") { [self] in look(after: $0) }
  }

  /// How often a transaction was open when the watch looked.
  var looks: Int { state.withLock { $0.looks } }
  /// The last statements of the batches after which stamps were locked.
  var faults: [String] { state.withLock { $0.faults } }

  /// Watches while `body` runs.
  func run<Value>(in app: TestApp, _ body: () async throws -> Value) async throws -> Value {
    state.withLock { $0.databaseURL = app.databaseURL }
    defer { state.withLock { $0.databaseURL = nil } }
    return try await body()
  }

  /// Locks of a table show locks of its rows: a read takes only ACCESS SHARE.
  private static let looking: SQL = """
    SELECT count(*)::integer, (count(*) FILTER (WHERE EXISTS (
      SELECT FROM pg_locks AS l
      WHERE l.pid = a.pid AND l.relation = 'user_stamps'::regclass AND l.mode <> 'AccessShareLock'
    )))::integer
    FROM pg_stat_activity AS a
    WHERE a.datname = current_database() AND a.state LIKE 'idle in transaction%'
    """

  private func look(after statements: [String]) {
    // The transaction has ended, or no lock can be new.
    guard let url = state.withLock({ $0.databaseURL }), statements.last != "COMMIT", statements.last != "ROLLBACK",
      statements.contains(where: { $0.contains(/\b(INSERT|UPDATE|DELETE|FOR)\b/) })
    else { return }
    let done = DispatchSemaphore(value: 0)
    Task.detached { [self] in
      defer { done.signal() }
      do {
        let row = try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.rows(Self.looking).first }
        let (open, locked): (Int, Int) = try row.map { (try $0[0], try $0[1]) } ?? (0, 0)
        state.withLock { state in
          if open > 0 { state.looks += 1 }
          if locked > 0 { state.faults.append(statements.last ?? "") }
        }
      } catch {
        state.withLock { $0.faults.append("\(error)") }
      }
    }
    done.wait()
  }
}
