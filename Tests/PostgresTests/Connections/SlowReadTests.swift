import Foundation
import Postgres
import Testing

/// Reads on connections of their own, and statements that no read may contain.
@Suite(.timeLimit(.minutes(15)))
struct SlowReadTests {
  @Test func `slow reads have their own time limit`() async throws {
    try await withDatabase(configure: {
      $0.statementTimeout = .milliseconds(200)
      $0.slowStatementTimeout = .seconds(20)
    }) { database, _ in
      let short = try await postgresError { try await database.execute("SELECT pg_sleep(1.5)") }
      #expect(short.sqlState == "57014")
      #expect(try await database.slow.rows("SELECT pg_sleep(1.5)").count == 1)
    }
  }

  @Test func `no read waits for parallel workers to start`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (n int)",
      configure: {
        // With these costs, PostgreSQL plans workers for every table.
        $0.url += "&options=-c%20parallel_setup_cost%3D0%20-c%20parallel_tuple_cost%3D0"
        $0.url += "%20-c%20min_parallel_table_scan_size%3D0"
      }
    ) { database, _ in
      let cost: String? = try await database.value("SHOW parallel_setup_cost")
      #expect(cost == "0")
      for plan in [
        try await database.rows("EXPLAIN SELECT n FROM notes"),
        try await database.slow.rows("EXPLAIN SELECT n FROM notes"),
      ] {
        let lines: [String] = try plan.map { try $0[0] }
        #expect(!lines.isEmpty && !lines.contains { $0.contains("Gather") }, "\(lines)")
      }
    }
  }

  @Test func `only slow reads have memory for large bitmaps`() async throws {
    try await withDatabase { database, _ in
      let slow: String = try await database.slow.rows("SHOW work_mem")[0][0]
      #expect(slow == "64MB")
      #expect(try await database.value("SHOW work_mem") == "4MB")
    }
  }

  @Test func `slow reads take no connection of others, and their body may write`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (n int)",
      configure: {
        $0.connections = 1
        $0.sharedConnections = 1
      }
    ) { database, server in
      try await database.slow.transaction { reads in
        for number in 1...3 as ClosedRange<Int32> {
          #expect(try await reads.value("SELECT \(number)") == number)
          #expect(try await database.value("SELECT \(number)") == number)
          try await database.batch("INSERT INTO notes VALUES (\(number))")
        }
      }
      #expect(try await server.value("SELECT sum(n) FROM notes") == 6)
      // The reverse could deadlock the two pools.
      let error = try await postgresError {
        _ = try await database.transaction { _ in try await database.slow.rows("SELECT 1") }
      }
      #expect(error.kind == .misuse)
    }
  }

  @Test func `several slow reads see one snapshot, and cannot write`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)") { database, server in
      try await database.slow.transaction(isolation: .repeatableRead) { reads in
        #expect(try await reads.value("SELECT count(*) FROM notes") == 0)
        try await server.script("INSERT INTO notes VALUES (1)")
        #expect(try await reads.value("SELECT count(*) FROM notes") == 0)
      }
      let error = try await postgresError {
        _ = try await database.slow.transaction { try await $0.rows("INSERT INTO notes VALUES (2)") }
      }
      #expect(error.sqlState == "25006")
    }
  }

  @Test(arguments: [true, false])
  func `a write among slow reads is the program's mistake, and not a failure of the database`(isBehindPooler: Bool)
    async throws
  {
    try await withDatabase("CREATE TABLE notes (n int)", configure: { $0.isBehindPooler = isBehindPooler }) {
      database, server in
      let error = try await postgresError { try await database.slow.rows("INSERT INTO notes VALUES (1)") }
      #expect(error.sqlState == "25006")
      #expect(!error.isUnavailable)
      #expect(try await server.value("SELECT count(*) FROM notes") == 0)
    }
  }

  @Test func `a write to a server that accepts none finds the database unavailable`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)") { _, server in
      let name: String = try await server.value("SELECT current_database()")
      // As on a standby, the server itself reports that its sessions are read-only.
      try await server.script("ALTER DATABASE \(name) SET default_transaction_read_only = on")
      let database = try Database(Database.Configuration(url: server.url))
      defer { database.close() }
      let error = try await postgresError { try await database.execute("INSERT INTO notes VALUES (1)") }
      #expect(error.sqlState == "25006")
      #expect(error.isUnavailable)
    }
  }
}
