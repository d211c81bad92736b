import Foundation
import Postgres
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct MigratorTests {
  private static let users = Migration(
    fileName: "0001_users.sql", text: "CREATE TABLE users (id bigint);\n-- down\nDROP TABLE users;\n")
  private static let names = Migration(
    fileName: "0002_names.sql",
    text: """
      ALTER TABLE users ADD name text;
      INSERT INTO users VALUES (1, 'ana');
      -- down
      ALTER TABLE users DROP name;
      """)
  private static let notes = Migration(
    fileName: "0003_notes.sql", text: "CREATE TABLE notes (id bigint);\n-- down\nDROP TABLE notes;\n")

  private func withServer(_ body: (Server) async throws -> Void) async throws {
    try await TestCluster.withDatabase { try await body(Server(url: $0)) }
  }

  private func up(_ server: Server, _ migrations: Migration...) async throws -> [String] {
    let applied = Collected<String>()
    try await Migrator(url: server.url, migrations: migrations).up { applied.append($0) }
    return applied.all
  }

  private func states(_ server: Server, _ migrations: Migration...) async throws -> [String] {
    try await Migrator(url: server.url, migrations: migrations).status().map { "\($0.name) \($0.state)" }
  }

  private func hasTable(_ name: String, _ server: Server) async throws -> Bool {
    try await server.value("SELECT to_regclass(\(name)) IS NOT NULL")
  }

  @Test func `pending migrations are applied once, in the order of their names`() async throws {
    try await withServer { server in
      #expect(try await states(server, Self.names, Self.users) == ["0001_users pending", "0002_names pending"])
      #expect(try await hasTable("schema_migrations", server) == false, "reading the status changes nothing")
      let first = try await up(server, Self.names, Self.users)
      #expect(first == ["0001_users", "0002_names"])
      #expect(try await up(server, Self.names, Self.users) == [])
      #expect(try await up(server, Self.notes, Self.users, Self.names) == ["0003_notes"])
      #expect(try await server.value("SELECT array_agg(name) FROM users") == ["ana"])
    }
  }

  @Test func `the status says which migrations are applied and when`() async throws {
    try await withServer { server in
      let before = Timestamp.now()
      _ = try await up(server, Self.users, Self.names)
      let migrator = Migrator(url: server.url, migrations: [Self.users, Self.names, Self.notes])
      let status = try await migrator.status()
      #expect(status.map(\.version) == ["0001", "0002", "0003"])
      #expect(status.map(\.name) == ["0001_users", "0002_names", "0003_notes"])
      #expect(status.map(\.state) == [.applied, .applied, .pending])
      let times = status.compactMap(\.appliedAt)
      #expect(times.count == 2)
      #expect(times == times.sorted())
      #expect(times.allSatisfy { $0 >= before && $0 <= .now() })
    }
  }

  @Test func `eight programs that migrate a database at the same time apply each file once`() async throws {
    try await withDatabase { database, server in
      // The first migrator waits here until all of them run.
      let waiting = Migration(fileName: "0000_waiting.sql", text: "SELECT pg_advisory_xact_lock(1);\n")
      let migrator = Migrator(url: server.url, migrations: [waiting, Self.users, Self.names, Self.notes])
      let applied = Collected<String>()
      try await together(8, database) { try await migrator.up { applied.append($0) } }
      #expect(applied.all.sorted() == ["0000_waiting", "0001_users", "0002_names", "0003_notes"])
      #expect(try await server.value("SELECT count(*) FROM users") == 1)
      #expect(try await server.value("SELECT count(*) FROM schema_migrations") == 4)
    }
  }

  @Test func `an applied file that was edited is rejected by name, and nothing is applied`() async throws {
    try await withServer { server in
      _ = try await up(server, Self.users, Self.names)
      let edited = Migration(fileName: "0002_names.sql", text: "ALTER TABLE users ADD name text; -- edited")
      #expect(
        try await states(server, Self.users, edited, Self.notes)
          == ["0001_users applied", "0002_names edited", "0003_notes pending"])
      let refusal = try await #require(throws: Migrator.Refusal.self) {
        _ = try await up(server, Self.users, edited, Self.notes)
      }
      #expect(refusal.description.contains("0002_names"))
      #expect(try await hasTable("notes", server) == false)
      #expect(try await states(server, Self.users, Self.names) == ["0001_users applied", "0002_names applied"])
    }
  }

  @Test func `a failing file leaves no trace, and earlier files stay applied`() async throws {
    try await withServer { server in
      let failing = Migration(
        fileName: "0002_failing.sql", text: "CREATE TABLE half (id bigint);\nSELECT missing FROM nowhere;\n")
      let error = try await postgresError { _ = try await up(server, Self.users, failing, Self.notes) }
      #expect(error.sqlState == "42P01")
      #expect(error.message.contains("nowhere"))
      #expect(try await hasTable("half", server) == false)
      #expect(try await hasTable("notes", server) == false)
      #expect(
        try await states(server, Self.users, failing, Self.notes)
          == ["0001_users applied", "0002_failing pending", "0003_notes pending"])
      let mended = Migration(fileName: "0002_failing.sql", text: "CREATE TABLE half (id bigint);\n")
      #expect(try await up(server, Self.users, mended, Self.notes) == ["0002_failing", "0003_notes"])
    }
  }

  private static let index = Migration(
    fileName: "0002_index.sql", text: "-- no-transaction\nCREATE INDEX CONCURRENTLY users_by_id ON users (id);\n")

  private func expectValidIndex(_ server: Server) async throws {
    let isValid: Bool = try await server.value(
      "SELECT indisvalid FROM pg_index WHERE indexrelid = 'users_by_id'::regclass")
    #expect(isValid)
  }

  @Test func `a file that cannot run in a transaction runs without one`() async throws {
    try await withServer { server in
      let inTransaction = Migration(fileName: "0002_index.sql", text: "CREATE INDEX CONCURRENTLY i ON users (id);\n")
      let error = try await postgresError { _ = try await up(server, Self.users, inTransaction) }
      #expect(error.sqlState == "25001")
      #expect(try await up(server, Self.users, Self.index, Self.notes) == ["0002_index", "0003_notes"])
      try await expectValidIndex(server)
      #expect(try await up(server, Self.users, Self.index, Self.notes) == [])
    }
  }

  @Test func `programs that wait for another's CREATE INDEX CONCURRENTLY do not block it`() async throws {
    try await withServer { server in
      _ = try await up(server, Self.users)
      try await server.script("INSERT INTO users SELECT generate_series(1, 100000)")
      let applied = Collected<String>()
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for _ in 0..<4 {
          tasks.addTask {
            try await Migrator(url: server.url, migrations: [Self.users, Self.index]).up { applied.append($0) }
          }
        }
        try await tasks.waitForAll()
      }
      #expect(applied.all == ["0002_index"])
      try await expectValidIndex(server)
    }
  }

  @Test
  func `a file that fails outside a transaction stays pending, and other programs are not locked out`() async throws {
    try await withServer { server in
      let failing = Migration(
        fileName: "0002_index.sql",
        text: "-- no-transaction\nCREATE INDEX CONCURRENTLY users_by_id ON users (nothing);\n")
      let error = try await postgresError { _ = try await up(server, Self.users, failing) }
      #expect(error.sqlState == "42703")
      #expect(try await states(server, Self.users, failing) == ["0001_users applied", "0002_index pending"])
      #expect(try await up(server, Self.users, Self.index) == ["0002_index"])
    }
  }

  @Test
  func `the status says that a migration is breaking, even if it is pending or unknown to the program`() async throws {
    try await withServer { server in
      let breaking = Migration(
        fileName: "0002_breaking.sql", text: "-- breaking\nALTER TABLE users RENAME TO people;\n")
      let newer = Migrator(url: server.url, migrations: [Self.users, breaking])
      let pending = try await newer.status()
      #expect(pending.map(\.isBreaking) == [false, true])
      try await newer.up()
      let status = try await Migrator(url: server.url, migrations: [Self.users]).status()
      #expect(status.map(\.name) == ["0001_users", "0002_breaking"])
      #expect(status.map(\.state) == [.applied, .unknown])
      #expect(status.map(\.isBreaking) == [false, true])
      #expect(status.allSatisfy { $0.appliedAt != nil })
    }
  }

  @Test func `a program that is older than the schema changes nothing`() async throws {
    try await withServer { server in
      _ = try await up(server, Self.users, Self.names, Self.notes)
      #expect(
        try await states(server, Self.users, Self.notes)
          == ["0001_users applied", "0002_names unknown", "0003_notes applied"])
      #expect(try await up(server, Self.users) == [])
      #expect(try await server.value("SELECT count(*) FROM schema_migrations") == 3)
    }
  }
}
