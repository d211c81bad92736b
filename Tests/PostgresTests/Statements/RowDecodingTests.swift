import Foundation
import Testing

@testable import Postgres

/// Rows as `Decodable` types and as tuples.
@Suite(.timeLimit(.minutes(15)))
struct RowDecodingTests {
  enum Status: String, Decodable {
    case open, closed
  }

  enum Level: Int, Decodable {
    case low = 1
    case high = 2
  }

  struct Details: Decodable, Equatable {
    var tags: [String]
    var seats: Int
  }

  struct Event: Decodable {
    let id: UUID
    let title: String
    let startTime: Timestamp
    let day: Day
    let created: Date
    let price: Decimal?
    let note: String?
    let missing: String?
    let status: Status
    let level: Level
    let details: Details
    let more: [Details]
    let hosts: [String]
    let seats: UInt16
    let small: Int8
    let isPublic: Bool
    let ratio: Double
    let pictureURL: String
    let address: Inet
    let length: Interval
    let range: SQLRangeOfInt

    struct SQLRangeOfInt: Decodable, SQLValue, Equatable {
      var range: SQLRange<Int>
      static var sqlType: SQLType { .int8range }
      func encode(into bytes: inout [UInt8]) -> SQLEncoding { range.encode(into: &bytes) }
      init(cell: SQLCell) throws { range = try SQLRange(cell: cell) }
      init(from decoder: any Decoder) throws { range = .empty }
    }
  }

  private static let row: SQL = """
    SELECT '00112233-4455-6677-8899-aabbccddeeff'::uuid AS id, 'Pasta' AS title,
      '2026-05-01T18:00:00Z'::timestamptz AS start_time, '2026-05-01'::date AS day,
      '1970-01-01T00:00:01Z'::timestamptz AS created, 12.50 AS price, NULL::text AS note, 'closed' AS status,
      2 AS level,
      '{"tags": ["a"], "seats": 4}'::jsonb AS details, '[{"tags": [], "seats": 1}]'::json AS more,
      ARRAY['ana', 'ben'] AS hosts, 65535 AS seats, -128 AS small, true AS is_public, 0.5::float8 AS ratio,
      'https://example.org' AS picture_url, '192.0.2.1'::inet AS address, '1 day'::interval AS length,
      '[1,3)'::int8range AS range
    """

  @Test func `a row becomes a struct, with every kind of property`() async throws {
    try await withDatabase { database, _ in
      let event = try #require(try await database.first(Self.row)).decode(Event.self, names: .snakeCase)
      #expect(event.id == UUID(uuidString: "00112233-4455-6677-8899-aabbccddeeff"))
      #expect(event.title == "Pasta")
      #expect(event.startTime == Timestamp(microseconds: 1_777_658_400_000_000))
      #expect(event.day == Day("2026-05-01"))
      #expect(event.created == Date(timeIntervalSince1970: 1))
      #expect(event.price == Decimal(string: "12.5"))
      #expect(event.note == nil && event.missing == nil)
      #expect(event.status == .closed && event.level == .high)
      #expect(event.details == Details(tags: ["a"], seats: 4))
      #expect(event.more == [Details(tags: [], seats: 1)])
      #expect(event.hosts == ["ana", "ben"])
      #expect(event.seats == .max && event.small == .min)
      #expect(event.isPublic && event.ratio == 0.5)
      #expect(event.pictureURL == "https://example.org")
      #expect(event.address == Inet("192.0.2.1"))
      #expect(event.length == Interval(days: 1))
      #expect(event.range.range == SQLRange(1..<3))
    }
  }

  private struct Named: Decodable, Equatable {
    var startTime: Int
    var n: Int?
  }

  @Test func `names of columns are equal to the properties' names, unless snake case is asked for`() async throws {
    try await withDatabase { database, _ in
      let rows = try await database.rows(#"SELECT i AS "startTime", NULL::int AS n FROM generate_series(1, 2) AS i"#)
      #expect(try rows.decode(Named.self) == [Named(startTime: 1), Named(startTime: 2)])
      let error = #expect(throws: PostgresError.self) { try rows.decode(Named.self, names: .snakeCase) }
      #expect(error?.message == "there is no column \"start_time\" in (startTime, n)")
    }
    let names = [
      "title": "title", "startTime": "start_time", "pictureURL": "picture_url", "URLString": "url_string", "": "",
      "a1B": "a1_b", "_id": "_id", "größeÄ": "größe_ä",
    ]
    for (property, column) in names { #expect(ColumnNames.snakeCase.column(for: property) == column) }
  }

  @Test(arguments: [
    ("1.5::float8", "column \"n\" has the type float8 (oid 701), wanted Int"),
    ("NULL::int", "column \"n\" is NULL, wanted Int"), ("'x'", "column \"n\" has the type text (oid 25), wanted Int"),
  ])
  func `an error names the column and the types`(value: String, message: String) async throws {
    struct One: Decodable {
      let n: Int
    }
    try await withDatabase { database, _ in
      let row = try #require(try await database.first("SELECT \(unescaped: value) AS n"))
      let error = #expect(throws: PostgresError.self) { try row.decode(One.self) }
      #expect(error?.kind == .decoding)
      #expect(error?.message == message)
    }
  }

  @Test func `other values that do not fit are errors that name the column`() async throws {
    struct Byte: Decodable { let n: UInt8 }
    struct Label: Decodable { let n: Status }
    struct Object: Decodable { let n: Details }
    struct Times: Decodable { let n: Date }
    try await withDatabase { database, _ in
      func error<Value: Decodable>(_ value: String, _ type: Value.Type) async throws -> PostgresError? {
        guard let row = try await database.first("SELECT \(unescaped: value) AS n") else { return nil }
        return #expect(throws: PostgresError.self) { try row.decode(type) }
      }
      #expect(
        try await error("256", Byte.self)?.message == "column \"n\" holds a value that does not fit, wanted UInt8")
      #expect(try await error("-1", Byte.self)?.message.contains("\"n\"") == true)
      #expect(try await error("1", Object.self)?.message.contains("\"n\" has the type int4") == true)
      #expect(try await error("'{\"tags\": 1}'::jsonb", Object.self)?.message.contains("\"n\" cannot be read") == true)
      #expect(try await error("'infinity'::timestamptz", Times.self)?.message.contains("does not fit") == true)
      let row = try #require(try await database.first("SELECT 'lost' AS n"))
      #expect(throws: DecodingError.self) { try row.decode(Label.self) }
      #expect(throws: PostgresError.self) { try row.decode([String].self) }
    }
  }

  @Test func `a row of one column becomes a single value`() async throws {
    try await withDatabase { database, _ in
      #expect(try await database.rows("SELECT i FROM generate_series(1, 3) AS i").decode(Int.self) == [1, 2, 3])
      #expect(try await database.rows("SELECT 'open'").decode(Status.self) == [.open])
      #expect(try await database.rows("SELECT '2026-05-01'::date").decode(Day.self) == [Day("2026-05-01")])
      let two = try await database.rows("SELECT 1, 2")
      #expect(throws: PostgresError.self) { try two.decode(Int.self) }
    }
  }

  @Test func `a row becomes a tuple`() async throws {
    try await withDatabase { database, _ in
      let rows = try await database.rows(
        "SELECT i, 'n' || i AS text, NULL::date AS day FROM generate_series(1, 2) AS i")
      let (number, text, day) = try rows[0].decode((Int, String, Day?).self)
      #expect((number, text, day) == (1, "n1", nil))
      let inferred: (Int32, String, Day?) = try rows[1].decode()
      #expect(inferred == (2, "n2", nil))
      let all = try rows.decode((Int, String, Day?).self)
      #expect(all.map(\.1) == ["n1", "n2"])
      let few = #expect(throws: PostgresError.self) { _ = try rows[0].decode((Int, String).self) }
      #expect(few?.message == "there are 3 columns (i, text, day), wanted 2")
      let wrong = #expect(throws: PostgresError.self) { _ = try rows[0].decode((Int, String, Day).self) }
      #expect(wrong?.message == "column \"day\" is NULL, wanted Day")
    }
  }

  @Test func `values of this library are strings in JSON`() throws {
    struct All: Codable, Equatable {
      var day = Day(days: 0)
      var time = TimeOfDay(hour: 18)
      var local = LocalTimestamp(microseconds: 1)
      var timestamp = Timestamp(microseconds: -1)
      var number = SQLNumeric("-12.50")
      var address = Inet("2001:db8::/32")
      var interval = Interval(months: 1, days: 2, microseconds: 3)
      var document = JSONDocument("{}")
    }
    let text = String(decoding: try JSONEncoder().encode(All()), as: UTF8.self)
    for part in [#""1970-01-01""#, #""18:00:00""#, #""1969-12-31T23:59:59.999999Z""#, #""-12.50""#, #""months":1"#] {
      #expect(text.contains(part))
    }
    #expect(try JSONDecoder().decode(All.self, from: Data(text.utf8)) == All())
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(All.self, from: Data(#"{"day": "soon"}"#.utf8)) }
  }
}
