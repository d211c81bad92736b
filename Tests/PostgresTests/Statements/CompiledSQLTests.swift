import Foundation
import Postgres
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CompiledSQLTests {
  private static let sum = CompiledSQL { (first: SQLArgument<Int>, second: SQLArgument<Int?>) in
    "SELECT \(first) + coalesce(\(second), \(first)) AS sum"
  }

  @Test func `an argument stands in several places, and its value is sent once`() async throws {
    #expect(Self.sum(1, 2).text == "SELECT $1 + coalesce($2, $1) AS sum")
    try await withDatabase { database, _ in
      let different: Int? = try await database.value(Self.sum(3, 4))
      #expect(different == 7)
      let missing: Int? = try await database.value(Self.sum(3, nil))
      #expect(missing == 6)
    }
  }

  @Test func `the text is made once, and each call has its own values`() async throws {
    let count = Mutex(0)
    let word = CompiledSQL { (word: SQLArgument<String>) in
      count.withLock { $0 += 1 }
      return "SELECT \(word)"
    }
    try await withDatabase { database, server in
      let words = (1...50).map { "word \($0)" }
      let found = try await withThrowingTaskGroup(of: (String, String?).self) { group in
        for text in words { group.addTask { (text, try await database.value(word(text))) } }
        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      #expect(found == Dictionary(uniqueKeysWithValues: words.map { ($0, $0) }))
    }
    #expect(count.withLock { $0 } == 1)
  }

  @Test func `a function of expressions serves both kinds of statements`() async throws {
    func isBetween(_ low: some SQLExpression<Int>, _ high: some SQLExpression<Int>) -> SQL {
      "n BETWEEN \(low) AND \(high)"
    }
    let compiled = CompiledSQL { (low: SQLArgument<Int>, high: SQLArgument<Int>) in
      "SELECT count(*) FROM generate_series(1, 10) AS n WHERE \(isBetween(low, high)) OR \(isBetween(high, low))"
    }
    let plain: SQL = "SELECT count(*) FROM generate_series(1, 10) AS n WHERE \(isBetween(3, 5))"
    #expect(plain.text.hasSuffix("n BETWEEN $1 AND $2"))
    try await withDatabase { database, _ in
      for sql in [compiled(2, 4), compiled(9, 7), plain] {
        let count: Int? = try await database.value(sql)
        #expect(count == 3)
      }
    }
  }

  @Test func `inside another statement, the numbers continue`() async throws {
    let sql: SQL = """
      SELECT \("before"), s.sum, \(true), t.sum FROM (\(Self.sum(1, 2))) AS s, (\(Self.sum(5, nil))) AS t
      """
    #expect(
      sql.text == "SELECT $1, s.sum, $2, t.sum FROM (SELECT $3 + coalesce($4, $3) AS sum) AS s, "
        + "(SELECT $5 + coalesce($6, $5) AS sum) AS t")
    try await withDatabase { database, _ in
      let row = try #require(try await database.first(sql))
      #expect(try row[0] == "before")
      #expect(try row[1] == 3)
      #expect(try row[3] == 10)
    }
  }

  @Test func `NULL and empty values arrive between others`() async throws {
    let all = CompiledSQL {
      (a: SQLArgument<String>, b: SQLArgument<Int>, c: SQLArgument<Int?>, d: SQLArgument<Data>) in
      "SELECT \(d) AS d, \(c) IS NULL AS c, \(b) AS b, \(a) AS a"
    }
    try await withDatabase { database, _ in
      for sql: SQL in [all("", 7, nil, Data([0, 1])), "SELECT * FROM (\(all("", 7, nil, Data([0, 1])))) AS t"] {
        let row = try #require(try await database.first(sql))
        #expect(try row["a"] == "")
        #expect(try row["b"] == 7)
        #expect(try row["c"])
        #expect(try row["d"] == Data([0, 1]))
      }
    }
  }

  @Test func `a value that cannot be sent is reported with its number`() async throws {
    let pair = CompiledSQL { (a: SQLArgument<Int>, b: SQLArgument<String>) in "SELECT \(b), \(a)" }
    try await withDatabase { database, _ in
      let error = try await postgresError { try await database.rows(pair(1, "a\u{0}b")) }
      #expect(error.kind == .invalidParameter)
      #expect(error.message.contains("$2"))
    }
  }

  @Test func `two in one statement, next to unescaped texts, keep their own values and texts`() async throws {
    let twice = CompiledSQL { (a: SQLArgument<Int>) in "\(a) \(unescaped: "+") \(a)" }
    let sql: SQL = "SELECT \(unescaped: "abs")(\(twice(-1))) \(unescaped: "*") (\(twice(5)))"
    #expect(sql.text == "SELECT abs($1 + $1) * ($2 + $2)")
    try await withDatabase { database, _ in
      let product: Int? = try await database.value(sql)
      #expect(product == 20)
    }
  }

  @Test func `statements with the same text and other types are prepared apart`() async throws {
    let number = CompiledSQL { (a: SQLArgument<Int>) in "SELECT pg_typeof(\(a))::text" }
    let text = CompiledSQL { (a: SQLArgument<String>) in "SELECT pg_typeof(\(a))::text" }
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      for _ in 1...3 {
        let types: [String?] = [try await database.value(number(1)), try await database.value(text("1"))]
        #expect(types == ["bigint", "text"])
      }
    }
  }

  @Test func `a value inside the text is a mistake of the program`() async {
    await #expect(processExitsWith: .failure) {
      _ = CompiledSQL { (a: SQLArgument<Int>) in "SELECT \(a), \(2)" }
    }
  }

  @Test func `an argument that is missing in the text is a mistake of the program`() async {
    await #expect(processExitsWith: .failure) {
      _ = CompiledSQL { (a: SQLArgument<Int>, b: SQLArgument<Int>) in "SELECT \(a)" }
    }
  }
}
