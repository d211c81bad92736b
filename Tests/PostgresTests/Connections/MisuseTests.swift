import Foundation
import Postgres
import TestSupport
import Testing

/// Incorrect use of the client must not cause further damage.
@Suite
struct MisuseTests {
  @Test func `the same text with parameters of other types is a different statement`() async throws {
    try await withDatabase("CREATE TABLE numbers (n int, value text)") { database, _ in
      func insert(_ n: Int32, _ value: some SQLValue) async throws {
        try await database.execute("INSERT INTO numbers SELECT \(n), to_jsonb(\(value))::text")
      }
      for _ in 0..<2 {
        try await insert(1, 7)
        try await insert(2, 1.5)
        try await insert(3, "text")
        try await insert(4, Timestamp(microseconds: 0))
      }
      let values: [String]? = try await database.value("SELECT array_agg(DISTINCT value ORDER BY value) FROM numbers")
      #expect(values == ["\"1970-01-01T00:00:00+00:00\"", "\"text\"", "1.5", "7"])
    }
  }

  @Test func `concurrent statements stay inside their transaction`() async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { database, _ in
      for _ in 0..<150 {
        await #expect(throws: Unexpected.self) {
          try await database.transaction { transaction in
            async let one = transaction.rows("INSERT INTO notes VALUES ('one')")
            async let two = transaction.rows("INSERT INTO notes VALUES ('two')")
            _ = try await (one, two)
            throw Unexpected("rolled back")
          }
        }
      }
      let notes: Int? = try await database.value("SELECT count(*) FROM notes")
      #expect(notes == 0)
    }
  }

  @Test func `a body that swallows a cancellation or a timeout cannot commit`() async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { database, server in
      let task = Task {
        try await database.transaction { transaction in
          try await transaction.rows("INSERT INTO notes VALUES ('before')")
          _ = try? await transaction.rows("SELECT pg_sleep(20)")
        }
      }
      try await eventually("it sleeps") {
        try await server.backends("query LIKE '%pg_sleep%' AND state = 'active'") == 1
      }
      task.cancel()
      let error = await #expect(throws: PostgresError.self) { try await task.value }
      #expect(error?.kind == .transactionAborted)
      let notes: Int? = try await database.value("SELECT count(*) FROM notes")
      #expect(notes == 0)
    }
  }

  @Test func `a transaction that begins on a shared connection does not stay open for other callers`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      _ = try? await database.rows("BEGIN")
      _ = try? await database.rows("SELECT 1 / 0")
      for _ in 0..<3 {
        let one: Int? = try await database.value("SELECT 1")
        #expect(one == 1)
      }
      // The server may notice a moment later that its connection was closed.
      try await eventually("no transaction is open") {
        let open: Int? = try await database.value(
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'")
        return open == 0
      }
    }
  }

  @Test func `callers that gave up waiting do not count toward the limit`() async throws {
    let configure: (inout Database.Configuration) -> Void = {
      $0.connections = 1
      $0.maximumWaiting = 5
    }
    try await withDatabase(configure: configure) { database, _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let began = AsyncStream.makeStream(of: Void.self)
        group.addTask {
          try await database.transaction { transaction in
            try await transaction.rows("SELECT 1")
            began.continuation.finish()
            for await _ in stream {}
          }
        }
        for await _ in began.stream {}
        for _ in 0..<20 {
          let waiter = Task { try await database.execute("SELECT 1") }
          try await Task.sleep(for: .milliseconds(2))
          waiter.cancel()
          _ = await waiter.result
        }
        group.addTask { try await database.execute("SELECT 1") }
        try await Task.sleep(for: .milliseconds(50))
        continuation.finish()
        try await group.waitForAll()
      }
    }
  }

  @Test func `a transaction may begin after another's end, or inside another on a different database`() async throws {
    try await withDatabase { one, _ in
      try await withDatabase { other, _ in
        let late = try await one.transaction { transaction in
          try await transaction.rows("SELECT 1")
          try await other.execute("SELECT 1")
          // Inherits the task-local transaction of this task, and runs after its end.
          return Task {
            try await Task.sleep(for: .milliseconds(100))
            try await one.execute("SELECT 1")
          }
        }
        try await late.value
      }
    }
  }

  @Test func `with target_session_attrs=read-write, reads and writes find the server`() async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { _, server in
      let database = try Database(Database.Configuration(url: server.url + "&target_session_attrs=read-write"))
      defer { database.close() }
      try await database.execute("INSERT INTO notes VALUES ('written')")
      #expect(try await database.value("SELECT text FROM notes") == "written")
    }
  }

  @Test func `an error's description, which is logged, quotes no values`() async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { database, _ in
      for value in ["s3cret", "s3\"c\nret"] {
        let error = try await postgresError { _ = try await database.rows("SELECT \(value)::text::int") }
        #expect(error.sqlState == "22P02")
        #expect(error.message.contains(value))
        #expect(error.description == "invalid input syntax for type integer: \"...\" (SQLSTATE 22P02)")
      }
      // Names of tables and similar are not values.
      let error = try await postgresError { _ = try await database.rows("SELECT FROM nowhere") }
      #expect(error.description.contains("nowhere"))
    }
  }

  @Test func `a text with U+0000 is never sent truncated`() async throws {
    try await withDatabase { database, _ in
      let error = await #expect(throws: PostgresError.self) {
        try await database.rows("SELECT 1 \(unescaped: "\u{0}") FROM nowhere")
      }
      #expect(error?.kind == .invalidParameter)
    }
  }
}
