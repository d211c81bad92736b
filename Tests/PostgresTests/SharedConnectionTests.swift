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
                let answer: Int? = try await database.value("SELECT \(number)")
                outcomes.append(answer == number ? "right" : "wrong")
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
      let answers = try await database.pipeline("SELECT 1", "SELECT 2 WHERE false", "SELECT \(3)", "SELECT \(4)")
      #expect(answers.map(\.count) == [1, 0, 1, 1])
      #expect(try answers[3][0][0] == 4)
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

  @Test(
    "A write fails and has no effect",
    arguments: [
      "INSERT INTO notes VALUES ('b')", "UPDATE notes SET text = 'c'", "DELETE FROM notes", "DROP TABLE notes",
      "WITH gone AS (DELETE FROM notes RETURNING text) SELECT text FROM gone", "SELECT nextval('counter')",
      "SELECT text FROM notes FOR UPDATE", "CREATE TABLE more ()",
    ])
  func writes(statement: String) async throws {
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
              let answer: Int? = try await database.value("SELECT \(small)")
              #expect(answer == small)
            }
          }
        }
        try await tasks.waitForAll()
      }
    }
  }
}

/// Texts are parsed once per connection.
@Suite(.timeLimit(.minutes(15)))
struct PreparedStatementTests {
  /// The number of statements that the shared connection's session has prepared for this text, and of their runs.
  private func prepared(_ sql: SQL, on database: Database) async throws -> (count: Int, runs: Int) {
    let row = try #require(
      try await database.first(
        """
        SELECT count(*), coalesce(sum(generic_plans + custom_plans), 0)::int8
        FROM pg_prepared_statements WHERE statement = \(sql.text)
        """))
    return (try row[0], try row[1])
  }

  @Test func `a text is prepared once for all values`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      for number in 0..<7 {
        let answer: Int? = try await database.value("SELECT \(number) + 0")
        #expect(answer == number)
      }
      #expect(try await prepared("SELECT \(0) + 0", on: database) == (1, 7))
    }
  }

  @Test func `concurrent first uses of a text all succeed and prepare it once`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      try await database.rows("SELECT 'the shared connection is open'")
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for number in 0..<500 {
          tasks.addTask {
            let answer: Int? = try await database.value("SELECT \(number) + \(unescaped: String(number % 10))")
            #expect(answer == number + number % 10)
          }
        }
        try await tasks.waitForAll()
      }
      for text in 0..<10 {
        #expect(try await prepared("SELECT \(0) + \(unescaped: String(text))", on: database).count == 1)
      }
    }
  }

  @Test func `a text can be used several times in the batch of its first use`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      let answers = try await database.pipeline("SELECT \(1)", "SELECT \(2)", "SELECT \(3)")
      #expect(try answers.map { try $0[0][0] as Int } == [1, 2, 3])
      #expect(try await prepared("SELECT \(0)", on: database).count == 1)
    }
  }

  @Test func `a text whose preparation failed or was skipped can be used later`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, server in
      let error = try await postgresError { try await database.pipeline("SELECT 1 / 0", "SELECT \(1) AS skipped") }
      #expect(error.sqlState == "22012")
      #expect(try await database.value("SELECT \(2) AS skipped") == 2)
      #expect(try await prepared("SELECT \(0) AS skipped", on: database).count == 1)

      let missing = try await postgresError { try await database.rows("SELECT text FROM notes") }
      #expect(missing.sqlState == "42P01")
      try await server.script("CREATE TABLE notes (text text); INSERT INTO notes VALUES ('there')")
      #expect(try await database.value("SELECT text FROM notes") == "there")
    }
  }

  @Test func `the number of prepared statements is limited, but the number of texts is not`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      for number in 0..<700 {
        let answer: Int? = try await database.value("SELECT \(unescaped: String(number))::int8")
        #expect(answer == number)
        let often: Int? = try await database.value("SELECT -1::int8")
        #expect(often == -1)
      }
      let texts = try await database.rows("SELECT statement FROM pg_prepared_statements").map { try $0[0] as String }
      #expect((450...500).contains(texts.count))
      // The ones that were not used for longest made room.
      #expect(texts.contains("SELECT -1::int8") && texts.contains("SELECT 699::int8"))
      #expect(!texts.contains("SELECT 0::int8") && !texts.contains("SELECT 150::int8"))
    }
  }

  @Test func `the limit also holds on the server if batches fail or tables change`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)", configure: { $0.sharedConnections = 1 }) { database, server in
      for number in 0..<500 { try await database.rows("SELECT \(unescaped: String(number))::int8") }
      for number in 0..<60 {
        // Its failure skips the DEALLOCATE for the second statement.
        _ = try? await database.pipeline("SELECT 1 / 0", "SELECT \(unescaped: String(number))::int4")
        try await database.rows("SELECT \(unescaped: String(number))::int2")
      }
      for number in 0..<30 { try await database.rows("SELECT n FROM notes WHERE n > \(unescaped: String(number))") }
      try await server.script("ALTER TABLE notes ALTER n TYPE bigint")
      for number in 0..<30 { try await database.rows("SELECT n FROM notes WHERE n > \(unescaped: String(number))") }
      let count: Int = try #require(try await database.value("SELECT count(*) FROM pg_prepared_statements"))
      #expect((450...500).contains(count))
    }
  }

  @Test func `after a migration changes a column's type, reads and transactions can still use it`() async throws {
    try await withDatabase("CREATE TABLE notes (n int); INSERT INTO notes VALUES (1)") { database, server in
      let read: SQL = "SELECT n FROM notes"
      let write: SQL = "UPDATE notes SET n = n + 1 RETURNING n"
      #expect(try await database.value(read) == 1)
      #expect(try await database.execute(write)[0]["n"] == 2)
      try await server.script("ALTER TABLE notes ALTER n TYPE bigint")
      // A transaction may fail once, because it cannot be retried transparently. A read can.
      #expect(try await database.value(read) == 2)
      _ = try? await database.execute(write)
      try await database.execute(write)
    }
  }
}
