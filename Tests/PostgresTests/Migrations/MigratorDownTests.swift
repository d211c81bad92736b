import Foundation
import Postgres
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct MigratorDownTests {
  /// Migrations that record when they are undone.
  private static let migrations = ["0001_a", "0002_b", "0003_c"].map {
    Migration(
      fileName: "\($0).sql",
      text: """
        CREATE TABLE IF NOT EXISTS undone (step bigserial, name text);
        CREATE TABLE "\($0)" ();
        -- down
        DROP TABLE "\($0)";
        INSERT INTO undone (name) VALUES ('\($0)');
        """)
  }

  private func undone(_ server: Server) async throws -> [String] {
    try await server.value("SELECT coalesce(array_agg(name ORDER BY step), '{}') FROM undone")
  }

  @Test func `migrations after a version are undone, newest first, and can be applied again`() async throws {
    try await TestCluster.withDatabase { url in
      let server = Server(url: url)
      let migrator = Migrator(url: url, migrations: Self.migrations)
      try await migrator.up()
      #expect(try await undone(server) == [], "going up runs no down part")
      let notices = Collected<String>()
      try await migrator.down(to: "0001") { notices.append($0) }
      #expect(notices.all == ["0003_c", "0002_b"])
      #expect(try await undone(server) == ["0003_c", "0002_b"])
      #expect(try await migrator.status().map(\.state) == [.applied, .pending, .pending])
      try await migrator.down(to: "0001")
      #expect(try await undone(server).count == 2)
      try await migrator.up()
      #expect(try await migrator.status().map(\.state) == [.applied, .applied, .applied])
    }
  }

  @Test func `a migration without a down part, or one that the program does not know, is not undone`() async throws {
    try await TestCluster.withDatabase { url in
      let server = Server(url: url)
      let final = Migration(fileName: "0004_final.sql", text: "CREATE TABLE final ();\n")
      try await Migrator(url: url, migrations: Self.migrations + [final]).up()
      for known in [Self.migrations + [final], Self.migrations] {
        let refusal = try await #require(throws: Migrator.Refusal.self) {
          try await Migrator(url: url, migrations: known).down(to: "0001")
        }
        #expect(refusal.description.contains("0004_final"))
      }
      #expect(try await undone(server) == [])
      #expect(try await server.value("SELECT count(*) FROM schema_migrations") == 4)
    }
  }

  @Test func `a failing down part leaves no trace`() async throws {
    try await TestCluster.withDatabase { url in
      let server = Server(url: url)
      let text = "CREATE TABLE kept ();\n-- down\nDROP TABLE kept;\nDROP TABLE nowhere;\n"
      let migrator = Migrator(url: url, migrations: [Migration(fileName: "0001_kept.sql", text: text)])
      try await migrator.up()
      let error = try await postgresError { try await migrator.down(to: "0000") }
      #expect(error.sqlState == "42P01")
      #expect(try await server.value("SELECT to_regclass('kept') IS NOT NULL"))
      #expect(try await migrator.status().map(\.state) == [.applied])
    }
  }

  @Test func `concurrent programs undo each migration once`() async throws {
    try await withDatabase { database, server in
      let text = "CREATE TABLE last ();\n-- down\nSELECT pg_advisory_xact_lock(1);\nDROP TABLE last;\n"
      let last = Migration(fileName: "0004_last.sql", text: text)
      let migrator = Migrator(url: server.url, migrations: Self.migrations + [last])
      try await migrator.up()
      try await together(4, database) { try await migrator.down(to: "0000") }
      #expect(try await undone(server) == ["0003_c", "0002_b", "0001_a"])
      #expect(try await server.value("SELECT count(*) FROM schema_migrations") == 0)
    }
  }

  @Test(arguments: ["\r\n", " \n", "\t\r\n"])
  func `the line that begins the down part is found with any line ending`(end: String) async throws {
    try await TestCluster.withDatabase { url in
      let server = Server(url: url)
      let text = ["CREATE TABLE kept ();", "-- down", "DROP TABLE kept;", ""].joined(separator: end)
      let migrator = Migrator(url: url, migrations: [Migration(fileName: "0001_kept.sql", text: text)])
      try await migrator.up()
      #expect(try await server.value("SELECT to_regclass('kept') IS NOT NULL"), "up ran the down part")
      try await migrator.down(to: "0000")
      #expect(try await server.value("SELECT to_regclass('kept') IS NULL"))
    }
  }
}
