import Foundation
import Testing

@testable import Postgres

/// A mismatch is an error that names the column, never a wrong value and never a trap.
@Suite(.timeLimit(.minutes(15)))
struct DecodingTests {
  /// Reads the column `wanted` of the statement's only row, which must fail.
  private func expectMismatch<Value: SQLValue>(
    _ database: Database, _ expression: String, as: Value.Type, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let row = try #require(try await database.first("SELECT 1 AS other, \(unescaped: expression) AS wanted"))
    for read in [{ try row["wanted"] }, { try row[1] }] as [() throws -> Value] {
      do {
        let value = try read()
        Issue.record("\(expression) was read as \(value)", sourceLocation: sourceLocation)
      } catch let error as PostgresError {
        #expect(error.kind == .decoding, sourceLocation: sourceLocation)
        #expect(error.message.contains("\"wanted\""), "\(error)", sourceLocation: sourceLocation)
      }
    }
  }

  private enum Color: String, SQLValue {
    case red, green
  }

  @Test func `a type that differs from the column's`() async throws {
    try await withDatabase { database, _ in
      try await expectMismatch(database, "1", as: String.self)
      try await expectMismatch(database, "1", as: Bool.self)
      try await expectMismatch(database, "1", as: Double.self)
      try await expectMismatch(database, "1", as: UUID.self)
      try await expectMismatch(database, "1", as: Data.self)
      try await expectMismatch(database, "1::int8", as: Timestamp.self)
      try await expectMismatch(database, "'1'", as: Int.self)
      try await expectMismatch(database, "'true'", as: Bool.self)
      try await expectMismatch(database, "true", as: Int.self)
      try await expectMismatch(database, "1.5::float8", as: Int.self)
      try await expectMismatch(database, "1.5::float8", as: Float.self)
      try await expectMismatch(database, "now()::timestamp", as: Timestamp.self)
      try await expectMismatch(database, "current_date", as: Timestamp.self)
      try await expectMismatch(database, "'00112233-4455-6677-8899-aabbccddeeff'", as: UUID.self)
      try await expectMismatch(database, "'a'::bytea", as: String.self)
      try await expectMismatch(database, "'a'", as: Data.self)
      try await expectMismatch(database, "1", as: JSONDocument.self)
      try await expectMismatch(database, "interval '1 day'", as: String.self)
    }
  }

  @Test func `numeric, which no type reads`() async throws {
    try await withDatabase { database, _ in
      try await expectMismatch(database, "1.5::numeric", as: Double.self)
      try await expectMismatch(database, "(SELECT sum(n) FROM (VALUES (1::bigint)) AS v (n))", as: Int.self)
      try await expectMismatch(database, "1.5::numeric", as: String.self)
    }
  }

  @Test func `NULL where a value is expected`() async throws {
    try await withDatabase { database, _ in
      try await expectMismatch(database, "NULL::text", as: String.self)
      try await expectMismatch(database, "NULL::int8", as: Int.self)
      try await expectMismatch(database, "NULL::timestamptz", as: Timestamp.self)
      try await expectMismatch(database, "NULL::jsonb", as: JSONDocument.self)
      try await expectMismatch(database, "NULL::text", as: Color.self)
      try await expectMismatch(database, "NULL::int8[]", as: [Int].self)
      try await expectMismatch(database, "ARRAY[1::int8, NULL]", as: [Int].self)
    }
  }

  @Test func `a number that is too large for its type`() async throws {
    try await withDatabase { database, _ in
      try await expectMismatch(database, "32768", as: Int16.self)
      try await expectMismatch(database, "-32769", as: Int16.self)
      try await expectMismatch(database, "2147483648", as: Int32.self)
      try await expectMismatch(database, "9223372036854775807::int8", as: Int32.self)
    }
  }

  @Test func `timestamps that a Timestamp cannot represent`() async throws {
    try await withDatabase { database, _ in
      try await expectMismatch(database, "'infinity'::timestamptz", as: Timestamp.self)
      try await expectMismatch(database, "'-infinity'::timestamptz", as: Timestamp.self)
      try await expectMismatch(database, "'294276-12-31T23:59:59Z'::timestamptz", as: Timestamp.self)
      try await expectMismatch(database, "'infinity'::timestamptz", as: Timestamp?.self)
      try await expectMismatch(database, "ARRAY['infinity'::timestamptz]", as: [Timestamp].self)
    }
  }

  @Test func `a time out of PostgreSQL's range never becomes another time`() async throws {
    try await withDatabase { database, _ in
      for microseconds in [.min, .min + 946_684_800_000_000] as [Int64] {
        let error = try await postgresError {
          try await database.rows("SELECT \(Timestamp(microseconds: microseconds))")
        }
        #expect(error.kind == .invalidParameter)
      }
    }
  }

  @Test func `a label that the Swift enumeration does not have`() async throws {
    try await withDatabase("CREATE TYPE color AS ENUM ('red', 'blue')") { database, _ in
      try await expectMismatch(database, "'blue'", as: Color.self)
      try await expectMismatch(database, "'blue'::color", as: Color.self)
      try await expectMismatch(database, "ARRAY['red', 'blue']::color[]", as: [Color].self)
      let red: Color? = try await database.value("SELECT 'red'::color")
      #expect(red == .red)
    }
  }

  @Test func `among columns with the same name, the first one is read, in any order of reads`() async throws {
    try await withDatabase { database, _ in
      for _ in 0..<2 {
        let rows = try await database.rows("SELECT n AS a, n * 10 AS b, n * 100 AS a FROM generate_series(1, 3) AS n")
        for (number, row) in rows.enumerated() {
          #expect(try row["a"] == number + 1)
          #expect(try row["b"] == (number + 1) * 10)
          #expect(try row["a"] == number + 1)
        }
      }
    }
  }

  @Test
  func `a row fetched from a cursor has the cursor's columns, even if the same FETCH had others before`() async throws {
    try await withDatabase(configure: { $0.connections = 1 }) { database, _ in
      for (query, columns): (SQL, [String]) in [("SELECT 1 AS x", ["x"]), ("SELECT 2 AS y, 3 AS z", ["y", "z"])] {
        try await database.transaction { transaction in
          try await transaction.rows("DECLARE c CURSOR FOR \(query)")
          let row = try #require(try await transaction.first("FETCH ALL FROM c"))
          for (place, name) in columns.enumerated() { #expect(try row.place(of: name) == place) }
        }
      }
    }
  }

  @Test func `arrays of other types, arrays with several dimensions, and values that are not arrays`() async throws {
    let setUp = "CREATE TYPE pair AS (a bigint, b bigint); CREATE TYPE long AS ENUM ('a label of many characters')"
    try await withDatabase(setUp) { database, _ in
      try await expectMismatch(database, "ARRAY['a']", as: [Int].self)
      try await expectMismatch(database, "ARRAY[1.5::numeric]", as: [Double].self)
      try await expectMismatch(database, "ARRAY[[1::int8, 2], [3, 4]]", as: [Int].self)
      try await expectMismatch(database, "1::int8", as: [Int].self)
      try await expectMismatch(database, "'{1,2}'", as: [Int].self)
      try await expectMismatch(database, "ROW(1, 2)::pair", as: [Int].self)
      try await expectMismatch(database, "'a label of many characters'::long", as: [String].self)
      try await expectMismatch(database, "ARRAY[1::int8]", as: Int.self)
      try await expectMismatch(database, "ARRAY[32768]", as: [Int16].self)
      try await expectMismatch(database, "ARRAY['\\x00'::bytea]", as: [String].self)
      try await expectMismatch(database, "'\\x000000000000000000000014'::bytea", as: [Int].self)
      try await expectMismatch(database, "'1 2'::oidvector", as: [Int].self)
    }
  }

  @Test
  func `the error says that an array has several dimensions, has NULLs, or is empty with another type`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          "SELECT ARRAY[[1, 2], [3, 4]] AS matrix, ARRAY[1, NULL, 3] AS gaps, '{}'::text[] AS texts"))
      let cases = [("matrix", "several dimensions"), ("gaps", "NULL among its elements"), ("texts", "oid 1009")]
      for (column, words) in cases {
        let error = #expect(throws: PostgresError.self) { _ = try row[column] as [Int] }
        #expect(error?.kind == .decoding)
        #expect(error?.message.contains("\"\(column)\"") == true)
        #expect(error?.message.contains(words) == true, "\(column)")
      }
      #expect(try row["gaps"] as [Int?] == [1, nil, 3])
    }
  }

  @Test func `only types whose values are text are read as a String`() async throws {
    let types = """
      CREATE TYPE wrapped AS (a int);
      CREATE TYPE span AS RANGE (subtype = text);
      CREATE TYPE color AS ENUM ('red');
      CREATE DOMAIN word AS text
      """
    try await withDatabase(types) { database, _ in
      for value in ["ROW(5)::wrapped", "span('a', 'b')", "'empty'::span", "ARRAY['red']::color[]", "1", "'x'::bytea"] {
        try await expectMismatch(database, value, as: String.self)
      }
      for value in ["'red'::color", "'red'::word", "'red'::varchar", "'red'::name"] {
        #expect(try await database.value("SELECT \(unescaped: value)") == "red")
      }
    }
  }

  @Test func `invalid UTF-8 is an error`() {
    for bytes in [[0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80]] as [[UInt8]] {
      bytes.withUnsafeBytes { bytes in
        _ = #expect(throws: CellMismatch.malformed) { try String(cell: SQLCell(type: SQLType.text.oid, bytes: bytes)) }
      }
    }
  }

  @Test func `a composite value read as an array`() async throws {
    try await withDatabase("CREATE TYPE wrapped AS (a int)") { database, _ in
      try await expectMismatch(database, "ROW(-5)::wrapped", as: [String].self)
    }
  }

  @Test func `a missing column, by name and by index`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT 1 AS one, 2 AS two"))
      let byName = #expect(throws: PostgresError.self) { _ = try row["three"] as Int }
      #expect(byName?.kind == .decoding)
      for name in ["three", "one", "two"] { #expect(byName?.message.contains(name) == true) }
      let optional = #expect(throws: PostgresError.self) { _ = try row["One"] as Int? }
      #expect(optional?.kind == .decoding, "names are case-sensitive, and a missing column is not NULL")
      for place in [2, -1, Int.max, Int.min] {
        let byPlace = #expect(throws: PostgresError.self) { _ = try row[place] as Int }
        #expect(byPlace?.kind == .decoding)
      }
    }
  }

  @Test func `rows outlive the database, and they are in order`() async throws {
    let rows = try await withDatabase { database, _ in
      try await database.rows("SELECT i, 'number ' || i AS text FROM generate_series(1::int8, 1000) AS i ORDER BY i")
    }
    #expect(rows.count == 1_000)
    #expect(rows.affected == 1_000)
    let numbers: [Int] = try rows.map { try $0["i"] }
    #expect(numbers == Array(1...1_000))
    let last = try #require(rows.last)
    #expect(try last["text"] == "number 1000")
  }

  @Test func `the value is nil without a row, but not for NULL in a row`() async throws {
    try await withDatabase { database, _ in
      #expect(try await database.rows("SELECT 1 WHERE false").isEmpty)
      let none: Int? = try await database.value("SELECT 1 WHERE false")
      #expect(none == nil)
      let error = try await postgresError { _ = try await database.value("SELECT NULL::int8", as: Int.self) }
      #expect(error.kind == .decoding)
      let null: Int?? = try await database.value("SELECT NULL::int8")
      #expect(null == .some(.none))
    }
  }
}
