import Foundation
import Postgres
import Testing

@Suite(.timeLimit(.minutes(15)))
struct SQLTests {
  @Test func `a value becomes a numbered parameter, never text`() {
    let name = "Robert'); DROP TABLE students; --"
    let sql: SQL = "SELECT * FROM students WHERE name = \(name) AND class = \(3) AND note = \(nil as String?)"
    #expect(sql.text == "SELECT * FROM students WHERE name = $1 AND class = $2 AND note = $3")
  }

  @Test func `an interpolated string literal is also a value`() async throws {
    let sql: SQL = "SELECT \("now()")"
    #expect(sql.text == "SELECT $1")
    try await withDatabase { database, _ in
      let result: String? = try await database.value(sql)
      #expect(result == "now()")
    }
  }

  @Test
  func `fragments are renumbered, even inside other fragments, and keep the order of their values`() async throws {
    let innermost: SQL = "\(4), \("five")::text"
    let inner: SQL = "\(3), \(innermost), \(6)"
    let sql: SQL = "SELECT concat_ws('-', \(1), \(2), \(inner), \(7), \(inner))"
    #expect(sql.text == "SELECT concat_ws('-', $1, $2, $3, $4, $5::text, $6, $7, $8, $9, $10::text, $11)")
    try await withDatabase { database, _ in
      let result: String? = try await database.value(sql)
      #expect(result == "1-2-3-4-five-6-7-3-4-five-6")
    }
  }

  @Test func `statements can be concatenated, even with themselves`() async throws {
    var sql: SQL = "SELECT \(1)" + ", \("two")"
    sql += ", \(nil as Int?)"
    sql += ""
    #expect(sql.text == "SELECT $1, $2, $3")
    let digit: SQL = "\("1") || "
    var twice = digit
    twice += twice
    let sum: SQL = "SELECT \(twice)''"
    try await withDatabase { database, _ in
      let row = try #require(try await database.first(sql))
      #expect(try row[0] == 1)
      #expect(try row[1] == "two")
      #expect(try row[2] == nil as Int?)
      let result: String? = try await database.value(sum)
      #expect(result == "11")
    }
  }

  @Test func `unescaped text is part of the statement`() async throws {
    let column = "\"odd \"\"name\"\"\""
    let sql: SQL = "SELECT \(5) AS \(unescaped: column)"
    #expect(sql.text == "SELECT $1 AS \"odd \"\"name\"\"\"")
    try await withDatabase { database, _ in
      let row = try #require(try await database.first(sql))
      #expect(try row["odd \"name\""] == 5)
    }
  }

  @Test func `an empty string is not NULL`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          """
          SELECT \("") IS NULL AS empty, \(nil as String?) IS NULL AS nothing, \("") AS text, \(Data()) AS bytes,
            \(nil as String?) AS missing
          """))
      #expect(try row["empty"] == false)
      #expect(try row["nothing"] == true)
      #expect(try row["text"] == "")
      #expect(try row["bytes"] == Data())
      #expect(try row["missing"] == nil as String?)
    }
  }

  @Test func `NULL keeps the type of the missing value`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first("SELECT pg_typeof(\(nil as Int?))::text, pg_typeof(\(nil as [UUID]?))::text"))
      #expect(try row[0] == "bigint")
      #expect(try row[1] == "uuid[]")
    }
  }

  @Test func `U+0000 is rejected, and nothing of the batch is sent`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, server in
      try await database.rows("SELECT 'the last statement'")
      let good: SQL = "SELECT 'before'"
      let bad: SQL = "SELECT \(1), \("a\u{0}b")"
      for batch in [[bad], [good, bad], ["SELECT \(bad)"]] {
        let error = try await postgresError { _ = try await database.send(batch) }
        #expect(error.kind == .invalidParameter)
        #expect(error.message.contains("$2"))
        #expect(!error.mayHaveRun)
      }
      #expect(try await server.backends("query = 'SELECT ''the last statement'''") == 1)
      #expect(try await database.value("SELECT 1") == 1, "the shared connection stays open")
    }
  }

  @Test func `U+0000 is also rejected inside an array`() async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError { try await database.rows("SELECT \(["fine", "a\u{0}b"])") }
      #expect(error.kind == .invalidParameter)
    }
  }

  @Test func `bytes and numbers may contain zero bytes`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT \(Data([0, 1, 0])), \(0), \([0, 256])"))
      #expect(try row[0] == Data([0, 1, 0]))
      #expect(try row[1] == 0)
      #expect(try row[2] == [0, 256])
    }
  }

  @Test func `a thousand parameters arrive in order`() async throws {
    var list: SQL = "\(0)"
    for number in 1..<1_000 { list += ", \(number)" }
    let sql: SQL = "SELECT ARRAY[\(list)]"
    try await withDatabase { database, _ in
      let result: [Int]? = try await database.value(sql)
      #expect(result == Array(0..<1_000))
    }
  }

  @Test func `more parameters than the protocol allows are rejected, and the connection stays usable`() async throws {
    var list: SQL = "\(0)"
    for _ in 0..<16 { list = "\(list), \(list)" }
    let sql: SQL = "SELECT 1 WHERE 1 IN (\(list))"
    #expect(sql.text.hasSuffix("$65536)"))
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      let before: Int? = try await database.value("SELECT pg_backend_pid()")
      let error = try await postgresError { try await database.rows(sql) }
      #expect(error.kind == .invalidParameter)
      let after: Int? = try await database.value("SELECT pg_backend_pid()")
      #expect(after == before)
    }
  }

  @Test(arguments: [
    "'; DROP TABLE notes; --", "\\'; DROP TABLE notes; --", "$1", "$2) OR (1=1", "NULL", "''", "\"", "%s %1$s \\0",
    "/* */ --", "E'\\x41'", "\u{feff}\u{202e}'", "1); COMMIT; DROP TABLE notes; SELECT (1", "\\N", "{1,2}",
  ])
  func `a value that looks like SQL stays a value`(value: String) async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { database, server in
      try await database.execute("INSERT INTO notes (text) VALUES (\(value))")
      #expect(try await server.value("SELECT text FROM notes") == value)
      let found: Int? = try await database.value("SELECT count(*) FROM notes WHERE text = \(value)")
      #expect(found == 1)
    }
  }

  @Test func `several statements in one text are rejected`() async throws {
    try await withDatabase("CREATE TABLE notes (text text)") { database, server in
      let error = try await postgresError {
        try await database.execute("INSERT INTO notes VALUES ('a'); INSERT INTO notes VALUES ('b')")
      }
      #expect(error.sqlState == "42601")
      #expect(try await server.value("SELECT count(*) FROM notes") == 0)
    }
  }

  @Test func `a task's comment stands before each of its statements, and nothing else changes`() async throws {
    try await withDatabase { database, _ in
      let comment = SQL.Comment("GET /things/**, /* and more")
      let current: SQL = "SELECT current_query() AS query, \(1) AS one"
      let expected = "/* GET /things/, / and more */ SELECT current_query() AS query, $1 AS one"
      try await SQL.$comment.withValue(comment) {
        // The second time, the statement is prepared.
        for _ in 1...2 {
          let row = try #require(try await database.first(current))
          #expect(try row["query"] == expected)
          #expect(try row["one"] == 1)
        }
        let queries = try await database.transaction { transaction in
          try transaction.write("SELECT set_config('comments.test', current_query(), true)")
          let written: String? = try await transaction.value("SELECT current_setting('comments.test')")
          let sent: String? = try await transaction.value("SELECT current_query()")
          return [written, sent]
        }
        #expect(
          queries.map { $0?.hasPrefix("/* GET /things/, / and more */ SELECT ") } == [true, true], "\(queries)")
        let (_, results) = try await database.transactionWithResults { $0.atCommit("SELECT current_query()") }
        #expect(try results[0][0][0] == "/* GET /things/, / and more */ SELECT current_query()")
      }
      let none: String? = try await database.value("SELECT current_query()")
      #expect(none == "SELECT current_query()")
    }
  }
}
