import Foundation
import Postgres
import Testing

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
        let result: Int? = try await database.value("SELECT \(number) + 0")
        #expect(result == number)
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
            let result: Int? = try await database.value("SELECT \(number) + \(unescaped: String(number % 10))")
            #expect(result == number + number % 10)
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
      let responses = try await database.pipeline("SELECT \(1)", "SELECT \(2)", "SELECT \(3)")
      #expect(try responses.map { try $0[0][0] as Int } == [1, 2, 3])
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
        let result: Int? = try await database.value("SELECT \(unescaped: String(number))::int8")
        #expect(result == number)
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
