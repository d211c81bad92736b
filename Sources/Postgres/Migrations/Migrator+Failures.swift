extension Migrator {
  /// Runs a script of a migration. While it runs, records the processes that block it.
  ///
  /// - Throws: ``LockFailure``, or ``PostgresError`` that names the migration and, if known, the statement.
  func run(_ script: String, of migration: Migration, on connection: ScriptConnection) throws {
    var blockers = Blockers(of: connection, url: url)
    do {
      try connection.script(script, lookingUpEvery: min(lockTimeout / 4, .milliseconds(250))) { blockers.look() }
    } catch let failure as ScriptConnection.StatementFailure {
      let statements = SQLScript.statements(of: script)
      let text =
        statements.indices.contains(failure.index) ? " (\(SQLScript.summary(of: statements[failure.index])))" : ""
      // The server parses the whole text before it runs any statement, so a syntax error may be in any of them.
      let isSomewhere = failure.error.sqlState == "42601" && failure.index == 0
      let place = isSomewhere ? migration.name : "\(migration.name), statement \(failure.index + 1)\(text)"
      // A deadlock with a running program is also resolved by a retry.
      guard failure.error.isLockTimeout || failure.error.sqlState == "40P01" else {
        throw failure.error.at(place)
      }
      throw LockFailure(description: "\(place) waits for \(blockers.found ?? "a process that has since ended")")
    }
  }

  /// The sessions of other programs in this database, counted by name.
  func otherPrograms(on connection: ScriptConnection) throws -> String {
    try connection.rows(
      """
      SELECT application_name, count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
        AND starts_with(application_name, \(programs))
      GROUP BY application_name
      ORDER BY application_name
      """
    ).map { row in
      let (name, count): (String, Int) = (try row[0], try row[1])
      return "\(name.isEmpty ? "unnamed" : name) (\(count == 1 ? "1 connection" : "\(count) connections"))"
    }.joined(separator: ", ")
  }
}

/// The processes that a statement waits for. A second connection queries them during the wait, because the server does
/// not know them afterwards.
private struct Blockers {
  private let url: String
  private let waiter: Int32
  private var observer: ScriptConnection?
  /// The most recent blockers, described for an operator.
  private(set) var found: String?

  init(of connection: ScriptConnection, url: String) {
    self.url = url
    waiter = connection.processID
  }

  mutating func look() {
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
