import Foundation

/// One migration file: plain SQL, applied once, in the order of the names.
///
/// Lines of comment with a meaning: `-- down` begins the part that undoes the migration; `-- no-transaction` is for a
/// file of one statement that cannot run in a transaction, such as CREATE INDEX CONCURRENTLY; `-- breaking` says that
/// programs that do not know this migration must not run on the migrated database.
public struct Migration: Sendable {
  /// The digits before the first underscore, such as `0001`.
  public let version: String
  /// The whole file name without its ending.
  public let name: String
  let up: String
  let down: String?
  let isTransactional: Bool
  let isBreaking: Bool
  /// Over every byte of the file: an applied migration never changes.
  public let checksum: String

  /// - Parameter fileName: such as `0001_users.sql`.
  public init(fileName: String, text: String) {
    name = fileName.hasSuffix(".sql") ? String(fileName.dropLast(4)) : fileName
    version = String(name.prefix { $0 != "_" })
    // A line may end in CR LF, or in spaces that nobody sees.
    var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    func line(of comment: String) -> Int? {
      lines.firstIndex { $0.hasPrefix(comment) && $0.dropFirst(comment.count).allSatisfy(\.isWhitespace) }
    }
    isTransactional = line(of: "-- no-transaction") == nil
    isBreaking = line(of: "-- breaking") != nil
    var undo: String?
    if let divider = line(of: "-- down") {
      undo = lines[(divider + 1)...].joined(separator: "\n")
      lines = Array(lines[..<divider])
    }
    up = lines.joined(separator: "\n")
    down = undo
    checksum = Self.fingerprint(text)
  }

  /// FNV-1a, 64 bits: tells an edit, which is all it is for.
  private static func fingerprint(_ text: String) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

/// Brings a database's schema to where this program wants it, and tells where it is.
///
/// Any number may run at once: each file's transaction takes the same advisory lock and reads anew what is applied.
public struct Migrator: Sendable {
  /// What a database and a program think of one migration.
  public struct Status: Sendable, Equatable {
    /// How the program's file and the database's record of it compare.
    public enum State: String, Sendable {
      /// Applied, as the file says.
      case applied
      /// Not applied yet.
      case pending
      /// Applied, but the program's file is another than the one that was applied.
      case edited
      /// Applied by a newer program; this one does not know it.
      case unknown
    }
    /// See ``Migration/version``.
    public let version: String
    /// See ``Migration/name``.
    public let name: String
    /// How the two compare.
    public let state: State
    /// Whether programs that do not know it must not run on a database where it is applied.
    public let isBreaking: Bool
    /// nil if it is not applied.
    public let appliedAt: Timestamp?
  }

  /// A reason not to go on, fit for a person at a terminal.
  public struct Refusal: Error, CustomStringConvertible {
    /// The reason, in English.
    public let description: String
  }

  private let url: String
  private let migrations: [Migration]
  /// "muster" in ASCII: any constant serves, as long as all use the same.
  private static let lockKey: Int64 = 0x6d75_7374_6572
  /// How long one migration waits for another deploy's to end, in seconds.
  private static let patience = 600

  /// Connects to nothing yet.
  ///
  /// - Parameters:
  ///   - url: a libpq URI or `key=value` string, of a role that may change the schema; not through a pooler.
  ///   - migrations: in any order.
  public init(url: String, migrations: [Migration]) {
    self.url = url
    self.migrations = migrations.sorted { $0.name < $1.name }
  }

  /// Every migration that the program or the database knows, in order. Changes nothing, not even on an empty database.
  public func status() async throws -> [Status] {
    try await ScriptConnection.run(url, applicationName: "migrate") { try status(on: $0) }
  }

  /// Applies what is pending.
  ///
  /// - Parameter notice: called with the name of each migration once it is applied.
  /// - Throws: ``Refusal`` when an applied file was edited, or ``PostgresError`` naming nothing but the server's words;
  ///   a failed file leaves no trace.
  public func up(notice: @escaping @Sendable (String) -> Void = { _ in }) async throws {
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      try prepare(connection)
      for migration in migrations {
        let alone =
          migration.isTransactional
          ? nil
          : {
            guard try isPending(migration, on: connection) else { return }
            try runAlone(migration.up, of: migration, on: connection)
          }
        let isNew = try exclusively(connection, before: alone) {
          guard try isPending(migration, on: connection) else { return false }
          if migration.isTransactional { try connection.script(migration.up) }
          try connection.rows(
            """
            INSERT INTO schema_migrations (version, name, checksum, breaking)
            VALUES (\(migration.version), \(migration.name), \(migration.checksum), \(migration.isBreaking))
            """)
          return true
        }
        if isNew { notice(migration.name) }
      }
    }
  }

  /// Undoes what was applied after `version`, newest first.
  ///
  /// - Parameter version: the last one to keep, exactly as in its file's name; `0000` keeps none.
  public func down(to version: String, notice: @escaping @Sendable (String) -> Void = { _ in }) async throws {
    guard version == "0000" || migrations.contains(where: { $0.version == version }) else {
      throw Refusal(description: "there is no migration \"\(version)\"")
    }
    try await ScriptConnection.run(url, applicationName: "migrate") { connection in
      let applied = try status(on: connection).filter { $0.appliedAt != nil && $0.version > version }
      for status in applied.reversed() {
        guard let migration = migrations.first(where: { $0.version == status.version }), let down = migration.down
        else { throw Refusal(description: "migration \(status.name) cannot be undone by this program") }
        let alone =
          migration.isTransactional
          ? nil
          : {
            guard try !isPending(migration, on: connection) else { return }
            try runAlone(down, of: migration, on: connection)
          }
        let isUndone = try exclusively(connection, before: alone) {
          // Another program may have been faster.
          let gone = try connection.rows("DELETE FROM schema_migrations WHERE version = \(status.version)")
          guard gone.affected == 1 else { return false }
          if migration.isTransactional { try connection.script(down) }
          return true
        }
        if isUndone { notice(migration.name) }
      }
    }
  }

  // MARK: Steps

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
      throw Refusal(
        description: "migration \(migration.name) was edited after it was applied: add a new migration instead")
    }
    return false
  }

  private func prepare(_ connection: ScriptConnection) throws {
    // The role's own limits are meant for the service: a migration takes what it takes.
    try connection.script(
      """
      SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0
      """)
    // Two programs that create the same table at once collide in the catalogue, so this takes the lock as well.
    try exclusively(connection) {
      try connection.script(
        """
        CREATE TABLE IF NOT EXISTS schema_migrations (
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

  /// Asks for the advisory lock again and again, in a transaction of its own each time for a lock that is the
  /// transaction's. A statement that waits for it, and a transaction that sleeps between two attempts, would hold a
  /// snapshot, for which CREATE INDEX CONCURRENTLY under the same lock would wait in turn.
  private func lock(_ connection: ScriptConnection, inTransaction: Bool) throws {
    let end = ContinuousClock.now + .seconds(Self.patience)
    while true {
      if inTransaction { try connection.script("BEGIN ISOLATION LEVEL READ COMMITTED") }
      let function: SQL = inTransaction ? "pg_try_advisory_xact_lock" : "pg_try_advisory_lock"
      if try connection.rows("SELECT \(function)(\(Self.lockKey))")[0][0] == true { return }
      if inTransaction { try connection.script("ROLLBACK") }
      guard .now < end else { throw Refusal(description: "another program has been migrating for too long") }
      usleep(50_000)
    }
  }

  /// Runs `body` in a transaction of its own that holds the advisory lock. What cannot run in a transaction runs first,
  /// under the same lock held by the session.
  ///
  /// - Parameter before: nil where everything can run in the transaction.
  @discardableResult
  private func exclusively(
    _ connection: ScriptConnection, before: (() throws -> Void)? = nil, _ body: () throws -> Bool
  ) throws -> Bool {
    do {
      // A table that is in use is waited for briefly only: everybody else queues behind whoever waits.
      try connection.script("SET lock_timeout = '10s'")
      if let before {
        try lock(connection, inTransaction: false)
        try before()
      }
      try lock(connection, inTransaction: true)
      let result = try body()
      try connection.script("COMMIT; SELECT pg_advisory_unlock_all()")
      return result
    } catch {
      try? connection.script("ROLLBACK; SELECT pg_advisory_unlock_all()")
      throw error
    }
  }

  /// Runs a part of a file of one statement that cannot run in a transaction.
  private func runAlone(_ script: String, of migration: Migration, on connection: ScriptConnection) throws {
    try connection.script(script)
    // CREATE INDEX CONCURRENTLY that fails leaves an index behind that is never used, and IF NOT EXISTS is content with
    // it the next time.
    let broken = try connection.rows("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid")
      .map { try $0[0] as String }
    guard broken.isEmpty else {
      throw Refusal(
        description:
          "\(migration.name): the index \(broken.joined(separator: ", ")) is not valid: drop it and try again")
    }
  }
}
