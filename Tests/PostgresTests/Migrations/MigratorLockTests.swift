import Foundation
import TestSupport
import Testing

@testable import Postgres

/// Migrations while other programs use the tables.
@Suite(.timeLimit(.minutes(15)))
struct MigratorLockTests {
  private static let users = Migration(
    fileName: "0001_users.sql", text: "CREATE TABLE users (id bigint);\n-- down\nDROP TABLE users;\n")
  private static let names = Migration(
    fileName: "0002_names.sql",
    text: """
      -- Names; and more.
      CREATE TABLE names (name text DEFAULT 'a;b');
      ALTER TABLE users
        ADD name text;
      """)

  private func migrator(_ server: Server, _ migrations: Migration...) -> Migrator {
    var migrator = Migrator(url: server.url, migrations: migrations)
    migrator.lockTimeout = .milliseconds(100)
    migrator.lockPatience = .seconds(30)
    return migrator
  }

  @Test
  func `a migration does not block others while it retries for a table in use, and it is applied once it is free`()
    async throws
  {
    try await withDatabase { database, server in
      try await migrator(server, Self.users).up()
      let migrator = migrator(server, Self.users, Self.names)
      let warnings = Collected<String>()
      let applied = Collected<String>()
      let migrating = try await database.transaction { reader in
        try await reader.rows("SELECT * FROM users")
        let migrating = Task { try await migrator.up(notice: { applied.append($0) }, warning: { warnings.append($0) }) }
        // On a busy machine, the first attempt may be too short to find the blocker.
        try await eventually("it has retried twice, and found the blocker") {
          warnings.count >= 2 && warnings.all.contains { $0.contains(" waits for process ") }
        }
        // Nothing waits for the migration, because it released its locks.
        #expect(try await server.value("SELECT count(*) FROM users") == 0)
        #expect(applied.all == [])
        return migrating
      }
      try await migrating.value
      #expect(applied.all == ["0002_names"])
      let warning = try #require(warnings.all.first { $0.contains(" waits for process ") })
      #expect(warning.hasPrefix("0002_names, statement 2 (ALTER TABLE users ADD name text) waits for process "))
      #expect(warning.contains("(tested, idle in transaction, in its transaction for "))
      #expect(warning.hasSuffix(": trying again"))
    }
  }

  @Test func `a migration that never gets its lock leaves no trace, and the error names its statement and the blocker`()
    async throws
  {
    try await withDatabase { database, server in
      try await migrator(server, Self.users).up()
      var migrator = migrator(server, Self.users, Self.names)
      // Long enough to look for the blocker on a busy machine.
      migrator.lockPatience = .seconds(1)
      let impatient = migrator
      try await database.transaction { reader in
        try await reader.rows("SELECT * FROM users")
        let pid: Int = try #require(try await reader.value("SELECT pg_backend_pid()"))
        let refusal = try await #require(throws: Migrator.Refusal.self) { try await impatient.up() }
        #expect(refusal.description.hasPrefix("0002_names, statement 2 (ALTER TABLE users ADD name text) waits for"))
        #expect(refusal.description.contains("process \(pid) (tested,"))
      }
      let hasNames: Bool = try await server.value("SELECT to_regclass('names') IS NOT NULL")
      #expect(!hasNames)
      #expect(try await impatient.status().map(\.state) == [.applied, .pending])
    }
  }

  @Test func `the error of a failing file names the file and its statement`() async throws {
    try await withDatabase { _, server in
      let failing = Migration(
        fileName: "0002_failing.sql", text: "SELECT 1;\n/* ; */ SELECT\n  missing FROM nowhere;\n")
      let error = try await postgresError { try await migrator(server, Self.users, failing).up() }
      #expect(error.message.hasPrefix("0002_failing, statement 2 (SELECT missing FROM nowhere): relation"))
      let misspelled = Migration(fileName: "0002_misspelled.sql", text: "SELECT 1;\nSELEC 2;\n")
      let syntax = try await postgresError { try await migrator(server, Self.users, misspelled).up() }
      #expect(syntax.message.hasPrefix("0002_misspelled: syntax error"), "any statement may have the syntax error")
    }
  }

  @Test
  func `a no-transaction file that gets no lock says how to find its invalid index, and other files ignore the index`()
    async throws
  {
    try await withDatabase { database, server in
      try await migrator(server, Self.users).up()
      let indexing = Migration(
        fileName: "0002_index.sql",
        text: "-- no-transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS users_by_id ON users (id);\n")
      var hasty = migrator(server, Self.users, indexing)
      hasty.lockPatience = .milliseconds(300)
      let impatient = hasty
      try await database.transaction { writer in
        try await writer.rows("INSERT INTO users VALUES (1)")
        let refusal = try await #require(throws: Migrator.Refusal.self) { try await impatient.up() }
        #expect(refusal.description.contains("an invalid index may remain"))
      }
      let refusal = try await #require(throws: Migrator.Refusal.self) { try await impatient.up() }
      #expect(refusal.description.contains("the index users_by_id is invalid"))
      let other = Migration(
        fileName: "0002_other.sql", text: "-- no-transaction\nCREATE INDEX CONCURRENTLY others_by_id ON users (id);\n")
      try await migrator(server, Self.users, other).up()
    }
  }

  @Test func `a no-transaction file ignores an index that another session breaks meanwhile`() async throws {
    try await withDatabase("CREATE TABLE others (n int); INSERT INTO others VALUES (1), (1)") { database, server in
      try await migrator(server, Self.users).up()
      let indexing = Migration(
        fileName: "0002_index.sql", text: "-- no-transaction\nCREATE INDEX CONCURRENTLY users_by_id ON users (id);\n")
      let patient = migrator(server, Self.users, indexing)
      let migration = try await database.transaction { writer in
        try await writer.rows("INSERT INTO users VALUES (1)")
        let migration = Task.detached { try await patient.up() }
        try await eventually("the migration waits for the writer") {
          try await server.value(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'migrate' AND wait_event_type = 'Lock'
              AND query LIKE '%CONCURRENTLY%'
            """) == 1
        }
        let broken = try await postgresError {
          _ = try await server.rows("CREATE UNIQUE INDEX CONCURRENTLY others_by_n ON others (n)")
        }
        #expect(broken.sqlState == "23505")
        return migration
      }
      try await migration.value
      #expect(
        try await server.value("SELECT indisvalid FROM pg_index WHERE indexrelid = 'users_by_id'::regclass") == true)
      #expect(
        try await server.value("SELECT indisvalid FROM pg_index WHERE indexrelid = 'others_by_n'::regclass") == false)
    }
  }

  @Test
  func `a warning names the connected programs before a breaking migration, but not before others`() async throws {
    try await withDatabase(configure: { $0.applicationName = "muster serve" }) { database, server in
      try await database.execute("SELECT 1")
      var migrator = migrator(
        server, Self.users,
        Migration(fileName: "0002_breaking.sql", text: "-- breaking\nALTER TABLE users RENAME TO people;\n"))
      migrator.programs = "muster "
      let deploy = migrator
      let warnings = Collected<String>()
      try await deploy.up(warning: { warnings.append($0) })
      #expect(warnings.all == ["0002_breaking is breaking, but programs are connected: muster serve (1 connection)"])
      try await deploy.up(warning: { warnings.append($0) })
      #expect(warnings.count == 1, "the migration is applied already")
    }
  }

  @Test(arguments: [
    ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]), (" -- a; b\n;; ", []),
    ("SELECT ';', \"a;b\", E'\\';', 'it''s;' ; SELECT 2;", ["SELECT ';', \"a;b\", E'\\';', 'it''s;'", "SELECT 2"]),
    ("/* a /* b; */ c; */ SELECT 1 -- ;\n+ 1;", ["SELECT 1 + 1"]),
    (
      "DO $$ BEGIN a; END $$; DO $b$ $$;$$ $b$; SELECT a$1;",
      ["DO $$ BEGIN a; END $$", "DO $b$ $$;$$ $b$", "SELECT a$1"]
    ),
    ("SELECT 'open; ", ["SELECT 'open;"]),
  ])
  func `a script is split into its statements`(script: String, statements: [String]) {
    #expect(SQLScript.statements(of: script).map { SQLScript.summary(of: $0) } == statements)
  }
}
