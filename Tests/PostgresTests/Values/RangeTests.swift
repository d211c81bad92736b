import Foundation
import Testing

@testable import Postgres

/// Ranges of every built-in type.
@Suite(.timeLimit(.minutes(15)))
struct RangeTests {
  /// Sends each range, and compares it with the text that PostgreSQL prints.
  private func expectRoundTrip<Bound: SQLRangeBound & Equatable>(
    _ ranges: [(SQLRange<Bound>, String)], _ type: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await withDatabase { database, _ in
      for (range, text) in ranges {
        let row = try #require(
          try await database.first("SELECT \(range), \(range)::text, \(text)::\(unescaped: type), \([range, nil])"))
        #expect(try row[0] as SQLRange<Bound> == row[2], sourceLocation: sourceLocation)
        #expect(try row[1] == text, sourceLocation: sourceLocation)
        #expect(try row[3] == [row[0], nil] as [SQLRange<Bound>?], sourceLocation: sourceLocation)
      }
      let none: SQLRange<Bound>? = try #require(try await database.first("SELECT \(nil as SQLRange<Bound>?)"))[0]
      #expect(none == nil, sourceLocation: sourceLocation)
    }
  }

  @Test func `whole numbers`() async throws {
    try await expectRoundTrip(
      [
        (SQLRange(1..<5), "[1,5)"), (SQLRange(1...5), "[1,6)"), (SQLRange(7...), "[7,)"), (SQLRange(..<0), "(,0)"),
        (SQLRange(...(-1)), "(,0)"), (.unbounded, "(,)"), (.empty, "empty"), (SQLRange(3..<3), "empty"),
        (.between(.exclusive(1), .exclusive(3)), "[2,3)"), (SQLRange(Int.min..<Int.max), "[\(Int.min),\(Int.max))"),
      ] as [(SQLRange<Int>, String)], "int8range")
    try await expectRoundTrip([(SQLRange(-1 as Int32..<Int32.max), "[-1,2147483647)")], "int4range")
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT '[1,5)'::int4range, ARRAY['[1,5)'::int4range]"))
      let (range, ranges) = try row.decode((SQLRange<Int>, [SQLRange<Int>]).self)
      #expect(range == SQLRange(1..<5))
      #expect(ranges == [range])
    }
  }

  @Test func `numbers, days and times`() async throws {
    let (low, high) = (try #require(SQLNumeric("-1.50")), try #require(SQLNumeric("2")))
    try await expectRoundTrip(
      [(SQLRange(low...high), "[-1.50,2]"), (.between(.exclusive(low), .unbounded), "(-1.50,)")], "numrange")
    let decimals: SQLRange<Decimal> = SQLRange(Decimal(1)..<Decimal(3))
    try await expectRoundTrip([(decimals, "[1,3)")], "numrange")
    let (first, last) = (try #require(Day("-0043-03-15")), try #require(Day("2026-05-01")))
    try await expectRoundTrip([(SQLRange(first..<last), "[\"0044-03-15 BC\",2026-05-01)")], "daterange")
    let local = try #require(LocalTimestamp("2026-05-01T18:00:00.000001"))
    try await expectRoundTrip([(SQLRange(local...), "[\"2026-05-01 18:00:00.000001\",)")], "tsrange")
    let time = Timestamp(microseconds: 1)
    try await expectRoundTrip([(SQLRange(...time), "(,\"1970-01-01 00:00:00.000001+00\"]")], "tstzrange")
    let infinite: SQLRange<MaybeInfinite<Timestamp>> = .between(.inclusive(.finite(time)), .exclusive(.infinity))
    try await expectRoundTrip([(infinite, "[\"1970-01-01 00:00:00.000001+00\",infinity)")], "tstzrange")
  }

  @Test func `the server uses ranges as ranges`() async throws {
    let setUp = "CREATE TABLE bookings (room int, booked int8range, EXCLUDE USING gist (booked WITH &&))"
    try await withDatabase(setUp) { database, _ in
      try await database.execute("INSERT INTO bookings VALUES (1, \(SQLRange(10..<20)))")
      #expect(try await database.value("SELECT room FROM bookings WHERE booked @> \(19)") == 1)
      #expect(
        try await database.value("SELECT room FROM bookings WHERE booked && \(SQLRange(20...30))", as: Int.self) == nil)
      let error = try await postgresError {
        try await database.execute("INSERT INTO bookings VALUES (2, \(SQLRange(15...)))")
      }
      #expect(error.sqlState == "23P01")
    }
  }

  @Test func `a range says whether it contains a value`() {
    #expect(SQLRange(1..<5).contains(1) && !SQLRange(1..<5).contains(5) && SQLRange(1...5).contains(5))
    #expect(SQLRange<Int>.unbounded.contains(.min) && !SQLRange<Int>.empty.contains(0))
    #expect(!SQLRange.between(.exclusive(1), .unbounded).contains(1))
  }

  @Test func `a range of another type, and bytes that are not a range, are errors`() async throws {
    try await withDatabase { database, _ in
      for sql: SQL in ["SELECT '[1,2)'::numrange AS r", "SELECT 'empty'::daterange AS r", "SELECT 1 AS r"] {
        let error = try await postgresError { _ = try await database.value(sql, as: SQLRange<Int>.self) }
        #expect(error.kind == .decoding && error.message.contains("\"r\" has the type"))
      }
      let error = try await postgresError {
        _ = try await database.value("SELECT '[-infinity,infinity]'::daterange AS r", as: SQLRange<Day>.self)
      }
      #expect(error.message.contains("does not fit"))
    }
    for bytes: [UInt8] in [
      [], [0], [0x10], [0x10, 0, 0, 0, 9, 1], [0x10, 0xff, 0xff, 0xff, 0xff], [0x02, 0x7f, 0xff],
    ] {
      bytes.withUnsafeBytes { bytes in
        _ = #expect(throws: CellMismatch.malformed) {
          try SQLRange<Int>(cell: SQLCell(type: SQLType.int8range.oid, bytes: bytes))
        }
      }
    }
  }
}
