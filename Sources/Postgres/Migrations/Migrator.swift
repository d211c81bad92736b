import Foundation

/// Migrates a database's schema to this program's version, and reports its state.
///
/// Any number of migrators may run concurrently: the transaction of each file takes the same advisory lock and then
/// reads which migrations are applied.
///
/// A statement that needs a lock on a table waits for at most ``lockTimeout``, because all later statements on the
/// table queue behind it. The file is then rolled back and retried, with growing pauses, for at most ``lockPatience``.
public struct Migrator: Sendable {
  /// The state of one migration in the database and in this program.
  public struct Status: Sendable, Equatable {
    /// How the program's file compares with the database's record.
    public enum State: String, Sendable {
      /// Applied, from an identical file.
      case applied
      /// Not applied yet.
      case pending
      /// Applied, but the program's file differs from the applied one.
      case edited
      /// Applied by a newer program. This program does not know it.
      case unknown
    }
    /// See ``Migration/version``.
    public let version: String
    /// See ``Migration/name``.
    public let name: String
    /// See ``State``.
    public let state: State
    /// Whether programs that do not know this migration must not run on a database where it is applied.
    public let isBreaking: Bool
    /// nil if it is not applied.
    public let appliedAt: Timestamp?
  }

  /// Why the migrator stopped, described for an operator at a terminal.
  public struct Refusal: Error, CustomStringConvertible {
    /// The reason, in English.
    public let description: String

    static func edited(_ name: String) -> Refusal {
      Refusal(description: "migration \(name) was edited after it was applied: add a new migration instead")
    }
  }

  private let url: String
  private let migrations: [Migration]
  /// The time limit for each lock that a statement of a file waits for.
  public var lockTimeout = Duration.seconds(1)
  /// The time limit for all attempts at one file. A file without a transaction has only one attempt, and this limit for
  /// each of its locks: its waits, such as for the end of older transactions, do not block others.
  public var lockPatience = Duration.seconds(60)
  /// The prefix of the `application_name` of programs that a breaking migration may affect.
  public var programs = ""

  /// The settings that a database must have, each with its value.
  public var requiredSettings: [RequiredSetting] = []

  /// A setting without which the migrations or the program misbehave.
  public struct RequiredSetting: Sendable {
    let name: String
    let value: String
    let remedy: String

    /// - Parameters:
    ///   - name: as in `pg_settings`, such as `server_encoding`.
    ///   - value: the only one that is accepted.
    ///   - remedy: what an operator does to get it.
    public init(_ name: String, _ value: String, remedy: String) {
      (self.name, self.value, self.remedy) = (name, value, remedy)
    }
  }

  /// A role that may read and write the tables, and nothing else. It gets these rights from ``up(notice:warning:)``,
  /// also for later tables. nil: no rights are granted.
  public var programRole: String?

  /// Does not connect.
  ///
  /// - Parameters:
  ///   - url: a libpq URI or `key=value` string, for a role that may change the schema. It must not go through a
  ///     pooler.
  ///   - migrations: in any order.
  public init(url: String, migrations: [Migration]) {
    self.url = url
    self.migrations = migrations.sorted { $0.name < $1.name }
  }

  /// All migrations that the program or the database knows, in order. Changes nothing, not even in an empty database.
  ///
  /// - Throws: ``Refusal`` if the database lacks one of ``requiredSettings``.
  public func status() async throws -> [Status] {
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try checkSettings(on: connection)
      return try status(on: connection)
    }
  }

  /// Applies the pending migrations.
  ///
  /// - Parameters:
  ///   - notice: called with the name of each migration once it is applied.
  ///   - warning: called with a sentence for the operator: before a breaking migration while other programs are
  ///     connected, and when a file has to wait for a lock.
  /// - Throws: ``Refusal`` if an applied file was edited, a lock was not available, or the database lacks one of
  ///   ``requiredSettings``; or ``PostgresError``, which names
  ///   the file and its statement. A failed file leaves no trace, but one without a transaction may leave an invalid
  ///   index.
  public func up(
    notice: @escaping @Sendable (String) -> Void = { _ in }, warning: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws {
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try checkSettings(on: connection)
      try refuseLackOfRights(on: connection)
      let grants = try programRole.flatMap { try Grants(to: $0, on: connection) }
      try prepare(connection)
      // First, so that no program meets a new table without its rights.
      if let grants { try exclusively(connection) { try grants.makeDefaults(on: connection) } }
      for migration in migrations {
        if migration.isBreaking, try isPending(migration, on: connection) {
          let others = try otherPrograms(on: connection)
          if !others.isEmpty { warning("\(migration.name) is breaking, but programs are connected: \(others)") }
        }
        let blockers = Blockers(of: connection, url: url)
        let alone =
          migration.isTransactional
          ? nil
          : {
            guard try isPending(migration, on: connection) else { return }
            try runAlone(migration.up, of: migration, on: connection, lookingFor: blockers)
          }
        let isNew = try exclusively(connection, before: alone, warning: warning) {
          guard try isPending(migration, on: connection) else { return false }
          if migration.isTransactional {
            try run(migration.up, of: migration, on: connection, lookingFor: blockers)
          }
          try connection.rows(
            """
            INSERT INTO schema_migrations (version, name, checksum, breaking)
            VALUES (\(migration.version), \(migration.name), \(migration.checksum), \(migration.isBreaking))
            """)
          return true
        }
        if isNew { notice(migration.name) }
      }
      if let grants { try exclusively(connection) { try grants.make(on: connection, warning: warning) } }
    }
  }

  /// The migrations that ``up(notice:warning:)`` would apply, in its order. Changes nothing.
  ///
  /// - Throws: ``Refusal`` if an applied file was edited, or the database lacks one of ``requiredSettings``.
  public func pending() async throws -> [Migration] {
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try checkSettings(on: connection)
      let states = try status(on: connection)
      if let edited = states.first(where: { $0.state == .edited }) { throw Refusal.edited(edited.name) }
      return migrations.filter { migration in
        states.contains { $0.version == migration.version && $0.state == .pending }
      }
    }
  }

  /// The effect of ``down(to:notice:warning:)``.
  public struct Undoing: Sendable {
    /// The names of the migrations that would be undone, newest first.
    public let migrations: [String]
    /// Tables, and columns as `table.column`, that would be deleted, each with its number of rows. Empty ones are left
    /// out.
    public let losses: [(name: String, rows: Int)]
    /// The other programs that are connected, such as `muster serve (2 connections)`; nil if there are none.
    public let programs: String?
  }

  /// The effect that ``down(to:notice:warning:)`` would have. Changes nothing.
  ///
  /// - Throws: ``Refusal`` if the version is unknown, or a migration cannot be undone by this program.
  public func undoing(to version: String) async throws -> Undoing {
    try checkVersion(version)
    return try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try checkSettings(on: connection)
      let undone = try undoable(to: version, on: connection)
      // Counting a large table may take longer than the role's limit for the service.
      try connection.script("SET statement_timeout = 0")
      var losses: [(name: String, rows: Int)] = []
      var seen: Set<Migration.Loss> = []
      for loss in undone.flatMap(\.losses) where seen.insert(loss).inserted {
        let exists: Bool = try connection.rows("SELECT to_regclass(\(loss.table)) IS NOT NULL")[0][0]
        guard exists else { continue }
        let rows: Int = try connection.rows("SELECT count(*) FROM \(unescaped: loss.table)")[0][0]
        if rows > 0 { losses.append((loss.name, rows)) }
      }
      let programs = try otherPrograms(on: connection)
      return Undoing(migrations: undone.map(\.name), losses: losses, programs: programs.isEmpty ? nil : programs)
    }
  }

  /// Undoes the migrations applied after `version`, newest first. Their tables and columns lose their content: see
  /// ``undoing(to:)``.
  ///
  /// - Parameters:
  ///   - version: the last version to keep, exactly as in the file name; `0000` keeps none.
  ///   - notice: called with the name of each migration once it is undone.
  ///   - warning: as for ``up(notice:warning:)``.
  public func down(
    to version: String, notice: @escaping @Sendable (String) -> Void = { _ in },
    warning: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws {
    try checkVersion(version)
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try checkSettings(on: connection)
      for migration in try undoable(to: version, on: connection) {
        let down = migration.down ?? ""
        let blockers = Blockers(of: connection, url: url)
        let alone =
          migration.isTransactional
          ? nil
          : {
            guard try !isPending(migration, on: connection) else { return }
            try runAlone(down, of: migration, on: connection, lookingFor: blockers)
          }
        let isUndone = try exclusively(connection, before: alone, warning: warning) {
          // Another program may have undone it already.
          let gone = try connection.rows("DELETE FROM schema_migrations WHERE version = \(migration.version)")
          guard gone.affected == 1 else { return false }
          if migration.isTransactional { try run(down, of: migration, on: connection, lookingFor: blockers) }
          return true
        }
        if isUndone { notice(migration.name) }
      }
    }
  }

  // MARK: Steps

  private func checkVersion(_ version: String) throws {
    guard version == "0000" || migrations.contains(where: { $0.version == version }) else {
      throw Refusal(description: "there is no migration \"\(version)\"")
    }
  }

  /// The applied migrations after `version`, newest first.
  private func undoable(to version: String, on connection: ScriptConnection) throws -> [Migration] {
    try status(on: connection).filter { $0.appliedAt != nil && $0.version > version }.reversed().map { status in
      guard let migration = migrations.first(where: { $0.version == status.version }), migration.down != nil else {
        throw Refusal(description: "migration \(status.name) cannot be undone by this program")
      }
      return migration
    }
  }

  private func checkSettings(on connection: ScriptConnection) throws {
    for setting in requiredSettings {
      let value: String = try connection.rows("SELECT current_setting(\(setting.name))")[0][0]
      guard value == setting.value else {
        throw Refusal(
          description: "\(setting.name) is \(value) in this database and must be \(setting.value): \(setting.remedy)")
      }
    }
  }

  private func status(on connection: ScriptConnection) throws -> [Status] {
    let exists: Bool? = try connection.rows("SELECT to_regclass('schema_migrations') IS NOT NULL").first?[0]
    let applied = exists == true ? try self.applied(on: connection) : []
    var all = migrations.map { migration in
      let known = applied.first { $0.version == migration.version }
      let state: Status.State =
        known.map { $0.checksum == migration.checksum ? .applied : .edited } ?? .pending
      return Status(
        version: migration.version, name: migration.name, state: state, isBreaking: migration.isBreaking,
        appliedAt: known?.appliedAt)
    }
    for row in applied where !migrations.contains(where: { $0.version == row.version }) {
      all.append(
        Status(
          version: row.version, name: row.name, state: .unknown, isBreaking: row.isBreaking, appliedAt: row.appliedAt))
    }
    return all.sorted { $0.version < $1.version }
  }

  private struct Applied {
    let version: String
    let name: String
    let checksum: String
    let isBreaking: Bool
    let appliedAt: Timestamp
  }

  private func applied(on connection: ScriptConnection) throws -> [Applied] {
    try connection.rows("SELECT version, name, checksum, breaking, applied_at FROM schema_migrations ORDER BY version")
      .map { row in
        Applied(
          version: try row["version"], name: try row["name"], checksum: try row["checksum"],
          isBreaking: try row["breaking"], appliedAt: try row["applied_at"])
      }
  }

  private func isPending(_ migration: Migration, on connection: ScriptConnection) throws -> Bool {
    guard let known = try applied(on: connection).first(where: { $0.version == migration.version }) else { return true }
    guard known.checksum == migration.checksum else {
      throw Refusal.edited(migration.name)
    }
    return false
  }

  /// Refuses a role that may not change the tables, unless there is nothing to do: a deploy may run the migrations with
  /// the role of its programs.
  private func refuseLackOfRights(on connection: ScriptConnection) throws {
    guard
      let table = try connection.rows(
        """
        SELECT pg_has_role(relowner, 'USAGE') AS is_owner, pg_get_userbyid(relowner)::text AS owner, current_user::text AS role
        FROM pg_class WHERE oid = to_regclass('schema_migrations')
        """
      ).first
    else { return }
    let (isOwner, owner, user): (Bool, String, String) = (
      try table["is_owner"], try table["owner"], try table["role"]
    )
    guard !isOwner, let pending = try migrations.first(where: { try isPending($0, on: connection) }) else { return }
    throw Refusal(
      description: "\(pending.name) is pending, and the role \(user) may not change the schema: "
        + "run the migrations as \(owner), the owner of its tables")
  }

  private func prepare(_ connection: ScriptConnection) throws {
    // The role's limits are meant for the service. A migration may take longer.
    try connection.script(
      """
      SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0
      """)
    // Two programs that create the same table concurrently collide in the catalog, so this takes the lock as well.
    try exclusively(connection) {
      // Without the right to create tables, even IF NOT EXISTS fails.
      let exists: Bool = try connection.rows("SELECT to_regclass('schema_migrations') IS NOT NULL")[0][0]
      if exists { return true }
      try connection.script(
        """
        CREATE TABLE schema_migrations (
          version text PRIMARY KEY,
          name text NOT NULL,
          checksum text NOT NULL,
          breaking boolean NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now()
        )
        """)
      return true
    }
  }

  /// Runs a script whose single statement cannot run in a transaction.
  private func runAlone(
    _ script: String, of migration: Migration, on connection: ScriptConnection, lookingFor blockers: Blockers
  ) throws {
    let before = try InvalidIndex.all(on: connection).map(\.oid)
    try run(script, of: migration, on: connection, lookingFor: blockers)
    // A failed CREATE INDEX CONCURRENTLY leaves an invalid index that is never used, and IF NOT EXISTS accepts it on
    // the next attempt.
    let words = Set(script.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") })
    let broken = try InvalidIndex.all(on: connection).filter { index in
      index.isNamed(in: words) || (!before.contains(index.oid) && index.isRelated(to: words))
    }
    guard broken.isEmpty else {
      let names = broken.map(\.name).joined(separator: ", ")
      throw Refusal(description: "\(migration.name): the index \(names) is invalid: drop it and try again")
    }
  }

  /// Runs a script of a migration.
  ///
  /// - Parameter blockers: what to look for while it runs. Every attempt gets the same one.
  /// - Throws: ``LockFailure``, or ``PostgresError`` that names the migration and, if known, the statement.
  private func run(
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
      guard failure.error.isLockTimeout || failure.error.sqlState == "40P01" else { throw failure.error.at(place) }
      throw LockFailure(description: "\(place) waits for \(blockers.found ?? "another process")")
    }
  }

  /// The sessions of other programs in this database, counted by name.
  private func otherPrograms(on connection: ScriptConnection) throws -> String {
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

/// An index that a failed or unfinished statement left behind.
private struct InvalidIndex {
  let oid: Int64
  let name: String
  let table: String

  /// All of the database, except those that another session is building.
  static func all(on connection: ScriptConnection) throws -> [InvalidIndex] {
    try connection.rows(
      """
      SELECT i.indexrelid::int8 AS oid, c.relname AS name, t.relname AS "table"
      FROM pg_index i
      JOIN pg_class c ON c.oid = i.indexrelid
      JOIN pg_class t ON t.oid = i.indrelid
      WHERE NOT i.indisvalid AND NOT EXISTS (
        SELECT FROM pg_stat_progress_create_index p
        WHERE p.datname = current_database() AND p.index_relid = i.indexrelid AND p.pid <> pg_backend_pid())
      ORDER BY c.relname
      """
    ).map { InvalidIndex(oid: try $0["oid"], name: try $0["name"], table: try $0["table"]) }
  }

  /// - Parameter words: of the script, in lower case.
  func isNamed(in words: Set<Substring>) -> Bool {
    words.contains(Substring(name.lowercased()))
  }

  /// Whether the script may have made the index without naming it. REINDEX CONCURRENTLY adds `_ccnew` to the name.
  func isRelated(to words: Set<Substring>) -> Bool {
    words.contains(Substring(table.lowercased()))
      || name.lowercased().firstRange(of: "_ccnew").map { words.contains(name.lowercased()[..<$0.lowerBound]) } ?? false
  }
}
