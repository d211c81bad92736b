import Foundation
import Postgres
import Testing

/// Slow reads, and time limits of single calls.
@Suite(.timeLimit(.minutes(15)))
struct TimeLimitTests {
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

  @Test func `a single call can have a shorter or a longer limit`() async throws {
    try await withDatabase(configure: { $0.slowStatementTimeout = .milliseconds(200) }) { database, _ in
      #expect(try await database.slow.limited(to: .seconds(20)).rows("SELECT pg_sleep(1.5)").count == 1)
      let start = ContinuousClock.now
      let slow = try await postgresError {
        try await database.slow.limited(to: .milliseconds(50)).rows("SELECT pg_sleep(9)")
      }
      #expect(slow.sqlState == "57014")
      let read = try await postgresError {
        try await database.limited(to: .milliseconds(50)).rows("SELECT pg_sleep(9)")
      }
      #expect(read.kind == .timeout)
      let write = try await postgresError {
        try await database.transaction { transaction in
          try transaction.limitStatements(to: .milliseconds(50))
          try await transaction.rows("SELECT pg_sleep(9)")
        }
      }
      #expect(write.sqlState == "57014")
      // Generous for a busy machine. Each would take 9 seconds.
      #expect(ContinuousClock.now - start < .seconds(8))
      // The limit ends with its call.
      #expect(try await database.execute("SELECT current_setting('statement_timeout')")[0][0] == "10s")
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
