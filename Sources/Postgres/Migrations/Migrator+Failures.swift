extension Migrator {
  /// Runs a script of a migration.
  ///
  /// - Parameter blockers: what to look for while it runs. Every attempt gets the same one.
  /// - Throws: ``LockFailure``, or ``PostgresError`` that names the migration and, if known, the statement.
  func run(
    _ script: String, of migration: Migration, on connection: ScriptConnection, lookingFor blockers: Blockers
  ) throws {
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
      throw LockFailure(description: "\(place) waits for \(blockers.found ?? "another process")")
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
