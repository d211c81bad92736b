import Foundation
import Postgres
import Testing

/// Values of every type survive a round trip, and the server sees the intended values.
@Suite(.timeLimit(.minutes(15)))
struct ValueTests {
  /// Sends each value alone, all values in an array, and NULL.
  private func expectRoundTrip<Value: SQLValue & Equatable>(_ values: Value...) async throws {
    try await withDatabase { database, _ in
      for value in values {
        let row = try #require(try await database.first("SELECT \(value), \(value as Value?)"))
        #expect(try row[0] as Value == value)
        #expect(try row[1] as Value? == value)
      }
      let gaps: [Value?] = [nil] + values + [nil]
      let row = try #require(
        try await database.first(
          "SELECT \(values), \(gaps), \([] as [Value]), \(nil as Value?), \(nil as [Value]?)"))
      #expect(try row[0] as [Value] == values)
      #expect(try row[1] as [Value?] == gaps)
      #expect(try row[2] as [Value] == [])
      #expect(try row[3] as Value? == nil)
      #expect(try row[4] as [Value]? == nil)
    }
  }

  @Test func `strings with any characters`() async throws {
    try await expectRoundTrip(
      "", " ", "plain", "it's", "a\\b", "line\r\nline\ttab", "ä", "a\u{308}", "👩‍👩‍👧‍👦", "𝔘𝔫𝔦", "\u{1}\u{7f}\u{10ffff}",
      "مرحبا", String(repeating: "長い", count: 100_000))
  }

  @Test func `the server counts the same characters`() async throws {
    try await withDatabase { database, _ in
      let characters: Int? = try await database.value("SELECT length(\("a\u{308}👩‍👩‍👧‍👦"))")
      #expect(characters == 9)
      let bytes: Int? = try await database.value("SELECT octet_length(\("ä€𝔘"))")
      #expect(bytes == 9)
    }
  }

  @Test func `every kind of text column reads as a String`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          """
          SELECT 'a'::text, 'b'::varchar(9), 'c'::char(3), 'd'::name, '{"e": 1}'::json, '{"f":1}'::jsonb, 'g'
          """))
      let texts: [String] = try (0..<7).map { try row[$0] }
      #expect(texts == ["a", "b", "c  ", "d", #"{"e": 1}"#, #"{"f": 1}"#, "g"])
    }
  }

  @Test func `booleans`() async throws {
    try await expectRoundTrip(true, false)
  }

  @Test func `integers up to their limits`() async throws {
    try await expectRoundTrip(0, 1, -1, Int.max, Int.min)
    try await expectRoundTrip(0 as Int64, -1, .max, .min)
    try await expectRoundTrip(0 as Int32, -1, .max, .min)
    try await expectRoundTrip(0 as Int16, -1, .max, .min)
  }

  @Test func `the server sees the intended integers, and integers of any width can be read`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          """
          SELECT \(Int.min)::text, \(Int32.min)::text, \(Int16.min)::text, -7::int2, -7::int4, -7::int8,
            pg_typeof(\(1))::text, pg_typeof(\(1 as Int32))::text, pg_typeof(\(1 as Int16))::text
          """))
      #expect(try row[0] == "-9223372036854775808")
      #expect(try row[1] == "-2147483648")
      #expect(try row[2] == "-32768")
      for column in 3...5 {
        #expect(try row[column] == -7 as Int)
        #expect(try row[column] == -7 as Int64)
        #expect(try row[column] == -7 as Int32)
        #expect(try row[column] == -7 as Int16)
      }
      let types: [String] = try (6...8).map { try row[$0] }
      #expect(types == ["bigint", "integer", "smallint"])
    }
  }

  @Test func `floating-point numbers, to the last bit`() async throws {
    try await expectRoundTrip(
      0.0, 0.1, -1.5, .pi, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity)
    try await expectRoundTrip(
      0 as Float, 0.1, -1.5, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity)
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first("SELECT \(Double.nan), \(Float.nan), \(-0.0), 0.5::float4, \(Double.nan)::text"))
      #expect((try row[0] as Double).isNaN)
      #expect((try row[1] as Float).isNaN)
      #expect((try row[2] as Double).sign == .minus)
      #expect(try row[3] == 0.5 as Double)
      #expect(try row[4] == "NaN")
    }
  }

  @Test func `UUIDs`() async throws {
    let known = try #require(UUID(uuidString: "00112233-4455-6677-8899-aabbccddeeff"))
    try await expectRoundTrip(known, UUID(), UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    try await withDatabase { database, _ in
      let text: String? = try await database.value("SELECT \(known)::text")
      #expect(text == "00112233-4455-6677-8899-aabbccddeeff")
    }
  }

  @Test func `timestamps, to the microsecond, before and after 1970 and 2000`() async throws {
    let texts = [
      0: "1970-01-01 00:00:00+00", 1: "1970-01-01 00:00:00.000001+00", -1: "1969-12-31 23:59:59.999999+00",
      946_684_800_000_000: "2000-01-01 00:00:00+00", 946_684_799_999_999: "1999-12-31 23:59:59.999999+00",
      1_782_036_123_456_789: "2026-06-21 10:02:03.456789+00", 253_402_300_799_999_999: "9999-12-31 23:59:59.999999+00",
      -62_135_596_800_000_000: "0001-01-01 00:00:00+00", -210_866_803_200_000_000: "4714-11-24 00:00:00+00 BC",
    ]
    try await withDatabase { database, _ in
      for (microseconds, text) in texts {
        let timestamp = Timestamp(microseconds: Int64(microseconds))
        let row = try #require(
          try await database.first("SELECT \(timestamp), \(timestamp)::text, \(text)::timestamptz"))
        #expect(try row[0] == timestamp)
        #expect(try row[1] == text)
        #expect(try row[2] == timestamp)
      }
    }
    try await expectRoundTrip(.now(), Timestamp(microseconds: -1), Timestamp(microseconds: 1_700_000_000_000_001))
  }

  @Test func `bytes, including no bytes and all possible bytes`() async throws {
    try await expectRoundTrip(Data(), Data([0]), Data(0...255), Data(repeating: 0xff, count: 1_000_000))
    try await withDatabase { database, _ in
      // A slice does not start at index 0.
      let slice = Data(0...255)[16..<18]
      let text: String? = try await database.value("SELECT encode(\(slice), 'hex')")
      #expect(text == "1011")
    }
  }

  @Test func `JSON documents`() async throws {
    try await expectRoundTrip(
      JSONDocument("{}"), JSONDocument("null"), JSONDocument(#"{"a": [1, 2.50, "ä\n", null, true], "b": {}}"#))
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first("SELECT \(JSONDocument(#"{"a": "x"}"#))->>'a', '[1,  2]'::json, '[1,  2]'::jsonb"))
      #expect(try row[0] == "x")
      #expect(try row[1] == JSONDocument("[1,  2]"))
      #expect(try row[2] == JSONDocument("[1, 2]"))
    }
  }

  @Test func `the server treats arrays as arrays`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          """
          SELECT 2 = ANY(\([1, 2, 3])), 4 = ANY(\([1, 2, 3])), 1 = ANY(\([] as [Int])), \(["a", nil, ""])::text,
            (\([1.5, 2.5]))[1], cardinality(\([] as [String])), (\(["x", "y"]))[2]
          """))
      #expect(try row[0] == true)
      #expect(try row[1] == false)
      #expect(try row[2] == false)
      #expect(try row[3] == #"{a,NULL,""}"#)
      #expect(try row[4] == 1.5 as Double)
      #expect(try row[5] == 0)
      #expect(try row[6] == "y")
    }
  }

  @Test func `arrays are read like their elements, as integers of any width and every kind of text`() async throws {
    try await withDatabase { database, _ in
      let row = try #require(
        try await database.first(
          """
          SELECT '{-7,8}'::int2[], '{-7,8}'::int4[], '{-7,8}'::int8[], '{}'::int4[], '[0:1]={1,2}'::int4[],
            '{0.5}'::float4[], '{a,b}'::varchar[], '{a,b}'::name[]
          """))
      for column in 0...2 {
        #expect(try row[column] as [Int] == [-7, 8])
        #expect(try row[column] as [Int64] == [-7, 8])
        #expect(try row[column] as [Int32] == [-7, 8])
        #expect(try row[column] as [Int16?] == [-7, 8])
      }
      #expect(try row[3] as [Int] == [])
      #expect(try row[4] as [Int] == [1, 2])
      #expect(try row[5] as [Double] == [0.5])
      for column in 6...7 { #expect(try row[column] as [String] == ["a", "b"]) }
    }
  }

  enum Answer: String, SQLValue, CaseIterable {
    case going, maybe
    case notGoing = "not_going"
  }

  enum Priority: Int16, SQLValue {
    case low = -1
    case high = 1
  }

  struct Name: RawRepresentable, SQLValue, Equatable {
    let rawValue: String
  }

  @Test func `a type with a raw value is sent as that value`() async throws {
    try await expectRoundTrip(Answer.going, .maybe, .notGoing)
    try await expectRoundTrip(Priority.low, .high)
    try await expectRoundTrip(Name(rawValue: "ana"), Name(rawValue: ""))
  }

  @Test func `a database enumeration can be read as a Swift enumeration or as text`() async throws {
    let setUp = "CREATE TYPE answer AS ENUM ('going', 'maybe', 'not_going'); CREATE TABLE answers (answer answer)"
    try await withDatabase(setUp) { database, _ in
      for answer in Answer.allCases {
        try await database.execute("INSERT INTO answers VALUES (\(answer)::answer)")
      }
      let rows = try await database.rows("SELECT answer, answer::text AS text FROM answers ORDER BY answer")
      let responses: [Answer] = try rows.map { try $0["answer"] }
      #expect(responses == Answer.allCases)
      let labels: [String] = try rows.map { try $0["answer"] }
      #expect(labels == Answer.allCases.map(\.rawValue))
      let answersFromText: [Answer] = try rows.map { try $0["text"] }
      #expect(answersFromText == Answer.allCases)
      let all: [Answer]? = try await database.value("SELECT array_agg(answer ORDER BY answer) FROM answers")
      #expect(all == Answer.allCases)
    }
  }
}
