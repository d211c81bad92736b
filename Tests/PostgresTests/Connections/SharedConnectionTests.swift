import Foundation
import Postgres
import Testing

/// Reads of many callers on a few connections.
@Suite(.timeLimit(.minutes(15)))
struct SharedConnectionTests {
  @Test func `200 tasks with 50 reads each get their own results`() async throws {
    try await withDatabase { database, server in
      let wrong = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for task in 0..<200 {
          tasks.addTask {
            var wrong = 0
            for number in 0..<50 {
              let nonce = task * 1_000 + number
              // Several texts, so that first uses of some texts mix with repeated uses of others.
              let column = "text\(number % 17)"
              let rows = try await database.rows(
                """
                SELECT \(nonce), \(String(nonce)) AS \(unescaped: column)
                FROM generate_series(1, \(number % 3))
                """)
              let isRight = try rows.allSatisfy { try $0[0] == nonce && $0[1] == String(nonce) }
              if !isRight || rows.count != number % 3 { wrong += 1 }
            }
            return wrong
          }
        }
        return try await tasks.reduce(0, +)
      }
      #expect(wrong == 0)
      #expect(try await server.backends() == 2)
    }
  }

  @Test func `no caller waits behind a slow read while another shared connection is free`() async throws {
    try await withDatabase(configure: {
      $0.statementTimeout = .seconds(120)
      $0.lockTimeout = .seconds(60)
    }) { database, server in
      try await eventually("both shared connections are open") {
        await withTaskGroup(of: Void.self) { tasks in
          for _ in 0..<20 { tasks.addTask { _ = try? await database.rows("SELECT 1") } }
        }
        return try await server.backends() == 2
      }
      let finished = Collected<Void>()
      let slow = try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let slow = Task.detached { try await database.rows("SELECT pg_advisory_xact_lock_shared(1)") }
        try await eventually("one read is slow") {
          try await server.backends(
            "wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '50 ms'") == 1
        }
        for _ in 0..<40 {
          Task.detached {
            for _ in 0..<50 { try await database.rows("SELECT 1") }
            finished.append(())
          }
        }
        try await eventually("all others have results") { finished.count == 40 }
        return slow
      }
      _ = try await slow.value
    }
  }

  @Test func `a failing statement does not affect others on the same shared connection`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, server in
      let outcomes = Collected<String>()
      await withTaskGroup(of: Void.self) { tasks in
        for number in 0..<300 {
          tasks.addTask {
            do {
              switch number % 5 {
              case 1: try await database.rows("SELECT 1 / \(number - number)")
              case 2: try await database.rows("SELECT missing FROM nowhere")
              case 3: try await database.rows("SELECT 1 / (3 - i) FROM generate_series(1, 5) AS i")
              default:
                let result: Int? = try await database.value("SELECT \(number)")
                outcomes.append(result == number ? "right" : "wrong")
              }
            } catch {
              outcomes.append((error as? PostgresError)?.sqlState ?? "\(error)")
            }
          }
        }
      }
      let counts = Dictionary(grouping: outcomes.all) { $0 }.mapValues(\.count)
      #expect(counts == ["right": 120, "22012": 120, "42P01": 60])
      let backends = try await server.backends()
      #expect(backends == 1)
    }
  }

  @Test func `a batch returns results in order, and fails as a whole with its first error`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      let responses = try await database.pipeline("SELECT 1", "SELECT 2 WHERE false", "SELECT \(3)", "SELECT \(4)")
      #expect(responses.map(\.count) == [1, 0, 1, 1])
      #expect(try responses[3][0][0] == 4)
      let nothing = try await database.send([])
      #expect(nothing.isEmpty)
      let error = try await postgresError {
        try await database.pipeline("SELECT 1", "SELECT 1 / 0", "SELECT missing FROM nowhere", "SELECT 4")
      }
      #expect(error.sqlState == "22012")
      #expect(!error.mayHaveRun)
      #expect(try await database.value("SELECT 5") == 5)
    }
  }

  @Test(arguments: [
    "INSERT INTO notes VALUES ('b')", "UPDATE notes SET text = 'c'", "DELETE FROM notes", "DROP TABLE notes",
    "WITH gone AS (DELETE FROM notes RETURNING text) SELECT text FROM gone", "SELECT nextval('counter')",
    "SELECT text FROM notes FOR UPDATE", "CREATE TABLE more ()",
  ])
  func `a write fails and has no effect`(statement: String) async throws {
    try await withDatabase("CREATE SEQUENCE counter; CREATE TABLE notes (text text); INSERT INTO notes VALUES ('a')") {
      database, server in
      let error = try await postgresError { try await database.rows("\(unescaped: statement)") }
      #expect(error.sqlState == "25006")
      #expect(!error.isUnavailable)
      #expect(try await server.value("SELECT array_agg(text) FROM notes") == ["a"])
      #expect(try await server.value("SELECT nextval('counter')") == 1)
      #expect(try await server.value("SELECT to_regclass('more') IS NULL"))
      #expect(try await database.value("SELECT text FROM notes") == "a")
    }
  }

  @Test func `each batch is its own transaction and leaves nothing in the session`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, server in
      try await database.rows("SELECT pg_advisory_xact_lock(1)")
      #expect(try await server.advisoryLocks(granted: true) == 0)
      #expect(try await server.backends("state = 'idle' AND xact_start IS NULL") == 1)
    }
  }

  @Test func `results and parameters larger than any buffer work, also several at once and mixed with small ones`()
    async throws
  {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for number in 0..<6 {
          tasks.addTask {
            let data = Data(repeating: UInt8(number), count: 3_000_000 + number)
            let row = try #require(try await database.first("SELECT \(data), md5(\(data)) = md5(\(data)), \(number)"))
            #expect(try row[0] == data)
            #expect(try row[1] == true)
            #expect(try row[2] == number)
          }
          tasks.addTask {
            for small in 0..<50 {
              let result: Int? = try await database.value("SELECT \(small)")
              #expect(result == small)
            }
          }
        }
        try await tasks.waitForAll()
      }
    }
  }
}
