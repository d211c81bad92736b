import Foundation
import Testing

@testable import Postgres

/// `numeric` survives round trips with all of its digits.
@Suite(.timeLimit(.minutes(15)))
struct NumericTests {
  static let texts = [
    "0", "0.00", "1", "-1", "10000", "9999", "-10000.0001", "1.5", "0.1", "0.0001", "0.00001",
    "-0.00000000000000000001",
    "12345678901234567890123456789.123456789", "100000000", "99990000", "0.9999", "0.00010000", "5000.0005",
    "1" + String(repeating: "0", count: 131_071), "0." + String(repeating: "0", count: 16_382) + "1",
    String(repeating: "9", count: 131_072) + "." + String(repeating: "9", count: 16_383),
  ]

  @Test(arguments: texts)
  func `the server and Swift agree on every number`(text: String) async throws {
    try await withDatabase { database, _ in
      let number = try #require(SQLNumeric(text))
      #expect(number.description == text)
      let row = try #require(
        try await database.first("SELECT \(number), \(number)::text, \(text)::numeric, \(number) = \(text)::numeric"))
      #expect(try row[0] == number)
      #expect(try row[1] == text)
      let read: SQLNumeric = try row[2]
      #expect(read == number)
      #expect(read.description == text)
      #expect(try row[3] == true)
    }
  }

  @Test func `infinity and NaN`() async throws {
    try await withDatabase { database, _ in
      for (number, text) in [(SQLNumeric.nan, "NaN"), (.infinity, "Infinity"), (.negativeInfinity, "-Infinity")] {
        let row = try #require(try await database.first("SELECT \(number), \(number)::text, \(text)::numeric"))
        #expect(try row[0] == number)
        #expect(try row[1] == text)
        #expect(try row[2] == number)
        #expect(SQLNumeric(text) == number)
        #expect(number.description == text)
      }
    }
  }

  @Test func `a column of a negative scale`() async throws {
    try await withDatabase("CREATE TABLE prices (price numeric(3, -2), small numeric(2, 4))") { database, _ in
      let (price, small) = (try #require(SQLNumeric("12345.67")), try #require(SQLNumeric("0.00123")))
      let row = try await database.execute(
        "INSERT INTO prices VALUES (\(price), \(small)) RETURNING price, small, price::text AS text")[0]
      #expect(try row["price"] == SQLNumeric(12_300))
      #expect((try row["small"] as SQLNumeric).description == "0.0012")
      #expect(try row["text"] == "12300")
    }
  }

  @Test func `arrays and NULL`() async throws {
    try await withDatabase { database, _ in
      let numbers = try Self.texts.prefix(17).map { try #require(SQLNumeric($0)) }
      let row = try #require(try await database.first("SELECT \(numbers), \(nil as SQLNumeric?), \([nil, numbers[3]])"))
      #expect(try row[0] == numbers)
      #expect(try row[1] as SQLNumeric? == nil)
      #expect(try row[2] == [nil, numbers[3]])
    }
  }

  @Test func `numbers are equal without regard to trailing zeros, and are ordered as in PostgreSQL`() async throws {
    #expect(SQLNumeric("1.0") == SQLNumeric("1.000"))
    #expect(SQLNumeric("1.0").hashValue == SQLNumeric("1").hashValue)
    #expect(SQLNumeric("-0.0") == SQLNumeric(0))
    let texts = ["-Infinity", "-10001", "-10000.5", "-1", "-0.5", "0", "0.00001", "0.5", "1", "9999", "10000", "1e9"]
    let ordered = try (texts + ["Infinity", "NaN"]).map { try #require(SQLNumeric($0)) }
    #expect(ordered.shuffled().sorted() == ordered)
    try await withDatabase { database, _ in
      let sorted: [SQLNumeric]? = try await database.value(
        "SELECT array_agg(n ORDER BY n) FROM unnest(\(ordered.shuffled())) AS n")
      #expect(sorted == ordered)
    }
  }

  @Test(arguments: [
    "", "-", "+", ".", "e5", "1e", "1e+", "1 ", " 1", "1.2.3", "0x10", "1_000", "١", "nan ", "1e999999999999999999999",
    "1e200000", "1e-16384", "--1", "1e5e5", "infinit",
  ])
  func `a text that is not a number, or too long, is rejected`(text: String) {
    #expect(SQLNumeric(text) == nil)
  }

  @Test func `exponents and signs`() {
    for (text, plain) in [
      ("1e3", "1000"), ("1.5E+2", "150"), ("+2.50e1", "25.0"), ("1e-5", "0.00001"), ("-12e-1", "-1.2"), (".5", "0.5"),
      ("5.", "5"), ("0e5", "0"), ("007", "7"), ("INF", "Infinity"),
    ] {
      #expect(SQLNumeric(text)?.description == plain)
    }
    #expect(SQLNumeric(Int.min).description == "-9223372036854775808")
    #expect(SQLNumeric(Int.max).description == "9223372036854775807")
    #expect(Double(SQLNumeric(3)) == 3)
    #expect(Double(SQLNumeric.infinity) == .infinity)
    #expect(Double(SQLNumeric.negativeInfinity) == -.infinity)
    #expect(Double(SQLNumeric.nan).isNaN)
  }

  @Test func `Foundation's Decimal holds up to 38 digits, and more are an error`() async throws {
    let fitting = [
      "0", "1", "-1.5", "0.1", "12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678",
      "-99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001",
    ]
    try await withDatabase { database, _ in
      for text in fitting {
        let decimal = try #require(Decimal(string: text))
        let row = try #require(try await database.first("SELECT \(decimal), \(decimal)::text, \(text)::numeric"))
        #expect(try row[0] == decimal)
        #expect(try row[1] == text)
        #expect(try row[2] == decimal)
      }
      #expect((try #require(try await database.value("SELECT 'NaN'::numeric", as: Decimal.self))).isNaN)
      #expect(try await database.value("SELECT \(Decimal.nan)::text") == "NaN")
      let large: Decimal? = try await database.value("SELECT 1.5e100::numeric")
      #expect(large == Decimal(sign: .plus, exponent: 99, significand: 15))
      for text in ["1234567890123456789012345678901234567890", "1e140", "1e-140", "Infinity"] {
        let error = try await postgresError {
          _ = try await database.value("SELECT \(text)::numeric AS wanted", as: Decimal.self)
        }
        #expect(error.kind == .decoding)
        #expect(error.message == "column \"wanted\" holds a value that does not fit, wanted Decimal")
      }
      let sum: Decimal? = try await database.value("SELECT sum(n) FROM unnest(\([Int.max, .max])) AS n")
      #expect(sum == Decimal(Int.max) * 2)
    }
  }

  @Test func `bytes that are not a number are an error, and never a trap`() {
    let header: [UInt8] = [0, 1, 0, 0, 0, 0, 0, 0]
    let bad: [[UInt8]] = [
      [], [0, 1], header, header + [0x27, 0x10], header + [0xff, 0xff], [0xff, 0xff] + header.dropFirst(2),
      [0, 0, 0, 0, 0x12, 0x34, 0, 0], [0, 0, 0, 0, 0, 0, 0xff, 0xff], header + [0, 1, 0],
    ]
    for bytes in bad {
      bytes.withUnsafeBytes { bytes in
        _ = #expect(throws: CellMismatch.malformed) {
          try SQLNumeric(cell: SQLCell(type: SQLType.numeric.oid, bytes: bytes))
        }
      }
    }
    // The extremes of the format.
    for weight: [UInt8] in [[0x7f, 0xff], [0x80, 0]] {
      ([0, 2] + weight + [0x40, 0, 0x3f, 0xff, 0, 0, 0, 1]).withUnsafeBytes { bytes in
        let number = try? SQLNumeric(cell: SQLCell(type: SQLType.numeric.oid, bytes: bytes))
        #expect((number?.description.utf8.count ?? 0) > 16_000)
      }
    }
  }
}
