import Foundation
import Postgres
import Testing

/// Types that a program adds, and records.
@Suite(.timeLimit(.minutes(15)))
struct OwnTypeTests {
  /// NULL after all, when its bytes are there already.
  private struct Hesitant: SQLValue {
    static var sqlType: SQLType { .text }

    init() {}

    init(cell: SQLCell) throws {}

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      bytes += Array(repeating: 255, count: 20)
      return .null
    }
  }

  @Test func `bytes of a value that turns out to be NULL are not sent`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT \(1), \(Hesitant()) IS NULL, \("after")"))
      #expect(try row[0] == 1)
      #expect(try row[1])
      #expect(try row[2] == "after")
    }
  }

  /// A record with a record in it.
  struct Visit: SQLRecord, Equatable {
    struct Visitor: SQLRecord, Equatable {
      let name: String

      init(name: String) { self.name = name }
      init(fields: inout SQLFields) throws { name = try fields.next() }
    }

    let day: Int
    let visitor: Visitor?

    init(day: Int, visitor: Visitor?) { (self.day, self.visitor) = (day, visitor) }
    init(fields: inout SQLFields) throws { (day, visitor) = (try fields.next(), try fields.next()) }
  }

  @Test func `records are read alone, in arrays and in records`() async throws {
    try await withDatabase { database, _ in
      let (first, second) = (Visit(day: 1, visitor: Visit.Visitor(name: "ana")), Visit(day: 2, visitor: nil))
      let row = try #require(
        try await database.first(
          """
          SELECT ROW(1, ROW('ana'::text)) AS one, NULL::record AS none,
            ARRAY(SELECT ROW(n, CASE n WHEN 1 THEN ROW('ana'::text) END) FROM generate_series(1, 2) AS n) AS two,
            ARRAY(SELECT ROW(n) FROM generate_series(1, 0) AS n) AS zero
          """))
      #expect(try row["one"] == first)
      #expect(try row["none"] as Visit? == nil)
      #expect(try row["two"] == [first, second])
      #expect(try row["zero"] == [Visit]())
    }
  }

  @Test(arguments: [
    ("ROW(1)", "cannot be read: it has no field 2"), ("ROW(1, NULL, 3)", "cannot be read: it has 3 fields"),
    ("ROW('one'::text, NULL)", "cannot be read: field 1 has the type text (oid 25), wanted Int"),
    ("ROW(NULL::int, NULL)", "cannot be read: field 1 is NULL, wanted Int"),
    ("ROW(1, ROW(2))", "cannot be read: field 2 cannot be read: field 1 has the type int4"),
    ("1", "has the type int4"), ("NULL::record", "is NULL"),
  ])
  func `a record of another shape is an error that names column and field`(
    record: String, message: String
  ) async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError {
        _ = try await database.value("SELECT \(unescaped: record) AS visit", as: Visit.self)
      }
      #expect(error.kind == .decoding)
      #expect(error.message.hasPrefix("column \"visit\" \(message)"), "\(error.message)")
    }
  }

  @Test func `a record cannot be sent`() async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError {
        _ = try await database.value("SELECT \(Visit(day: 1, visitor: nil)) IS NULL", as: Bool.self)
      }
      #expect(error.kind == .invalidParameter)
    }
  }

  /// A type with an error of its own.
  struct Even: SQLValue {
    struct IsOdd: Error {}
    static var sqlType: SQLType { .int8 }
    func encode(into bytes: inout [UInt8]) -> SQLEncoding { 2.encode(into: &bytes) }
    init(cell: SQLCell) throws {
      guard try Int(cell: cell) % 2 == 0 else { throw IsOdd() }
    }
  }

  @Test func `an error of a type's own becomes an error that names the column`() async throws {
    try await withDatabase { database, _ in
      let error = try await postgresError { _ = try await database.value("SELECT 3 AS number", as: Even.self) }
      #expect(error.kind == .decoding)
      #expect(error.message == "column \"number\" cannot be read: IsOdd(), wanted Even")
    }
  }
}
