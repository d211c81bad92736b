/// The processes that a migration waits for. A second connection queries them during the wait, because the server does
/// not know them afterwards. On a busy machine, one attempt may be too short to open it.
final class Blockers {
  private let url: String
  private let waiter: Int32
  private var observer: ScriptConnection?
  /// The most recent blockers, described for an operator.
  private(set) var found: String?

  init(of connection: ScriptConnection, url: String) {
    self.url = url
    waiter = connection.processID
  }

  func look() {
    do {
      let observer = try observer ?? ScriptConnection.open(url, applicationName: "migrate")
      self.observer = observer
      let blockers: [String] = try observer.rows(
        """
        SELECT format(
          'process %s (%s, %s, in its transaction for %s s)', pid, coalesce(nullif(application_name, ''), 'unnamed'),
          coalesce(state, backend_type), coalesce(extract(epoch FROM clock_timestamp() - xact_start)::bigint, 0))
        FROM pg_stat_activity
        WHERE pid = ANY(pg_blocking_pids(\(waiter)))
        ORDER BY xact_start
        """
      ).map { try $0[0] }
      if !blockers.isEmpty { found = blockers.joined(separator: ", ") }
    } catch {
      // The migration continues without knowing its blockers.
      observer = nil
    }
  }
}
