import Foundation
import Testing

@testable import Postgres

/// `timestamp`, `date`, `time` and `interval`, to their extremes.
@Suite(.timeLimit(.minutes(15)))
struct TimeTests {
  @Test func `days, months and years, before Christ and after 9999`() async throws {
    let days: [(year: Int, month: Int, day: Int, sql: String, iso: String)] = [
      (1970, 1, 1, "1970-01-01", "1970-01-01"), (2000, 2, 29, "2000-02-29", "2000-02-29"),
      (1900, 2, 28, "1900-02-28", "1900-02-28"), (1900, 3, 1, "1900-03-01", "1900-03-01"),
      (1, 1, 1, "0001-01-01", "0001-01-01"), (0, 12, 31, "0001-12-31 BC", "0000-12-31"),
      (0, 2, 29, "0001-02-29 BC", "0000-02-29"), (-43, 3, 15, "0044-03-15 BC", "-0043-03-15"),
      (-4713, 11, 24, "4714-11-24 BC", "-4713-11-24"), (5_874_897, 12, 31, "5874897-12-31", "+5874897-12-31"),
      (10_000, 1, 1, "10000-01-01", "+10000-01-01"),
    ]
    try await withDatabase { database, _ in
      for (year, month, number, sql, iso) in days {
        let day = try #require(Day(year: year, month: month, day: number))
        #expect(day.calendar == (year, month, number))
        #expect(day.description == iso)
        #expect(Day(iso) == day)
        let row = try #require(try await database.first("SELECT \(day), \(day)::text, \(sql)::date"))
        #expect(try row[0] == day)
        #expect(try row[1] == sql)
        #expect(try row[2] == day)
      }
      // Every day around each change of a century and of the calendar's eras.
      let wrong: Int? = try await database.value(
        """
        SELECT count(*)
        FROM unnest(\(Self.someDays), \(Self.someDays.map(\.description))) AS d (day, text)
        WHERE to_char(day, 'YYYY-MM-DD') <> text
        """)
      #expect(wrong == 0)
    }
  }

  private static let someDays = stride(from: -700_000, to: 2_900_000, by: 997).map { Day(days: $0) }

  @Test func `a day that the calendar does not have is nil, and no day traps`() {
    for (year, month, day) in [
      (2023, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (2026, 1, 32),
      (.max, 1, 1), (.min, 12, 31), (2026, .max, 1), (2026, 1, .min),
    ] {
      #expect(Day(year: year, month: month, day: day) == nil)
    }
    for text in ["", "2026-5-1", "2026-05-01 ", "26-05-01", "2026-02-30", "99999999999999-01-01", "２０２６-05-01"] {
      #expect(Day(text) == nil)
    }
    for days in [Int.max, .min, .max - 1, .min + 1, 0] {
      let day = Day(days: days)
      #expect(day.calendar.month >= 1 && day.calendar.day >= 1 && !day.description.isEmpty)
    }
  }

  @Test func `times of day, to the microsecond`() async throws {
    let times = ["00:00:00", "00:00:00.000001", "09:05:07.120000", "23:59:59.999999", "24:00:00"]
    try await withDatabase { database, _ in
      for text in times {
        let time = try #require(TimeOfDay(text))
        #expect(time.description == text)
        let row = try #require(try await database.first("SELECT \(time), \(text)::time, \(time) = \(text)::time"))
        #expect(try row[0] == time)
        #expect(try row[1] == time)
        #expect(try row[2] == true)
      }
      let all = times.compactMap(TimeOfDay.init)
      #expect(try await database.value("SELECT \(all)") == all)
      let none: TimeOfDay? = try #require(try await database.first("SELECT \(nil as TimeOfDay?)"))[0]
      #expect(none == nil)
    }
    let time = try #require(TimeOfDay(hour: 9, minute: 5, second: 7, microsecond: 12))
    #expect((time.hour, time.minute, time.second, time.microsecond) == (9, 5, 7, 12))
    #expect(TimeOfDay("18:00:00.5")?.microsecond == 500_000)
    for text in [
      "", "1:00:00", "24:00:01", "25:00:00", "12:60:00", "12:00:60", "12:00", "12:00:00.", "12:00:00.1234567",
    ] {
      #expect(TimeOfDay(text) == nil)
    }
    #expect(TimeOfDay(microseconds: -1) == nil)
    #expect(TimeOfDay(microseconds: .max) == nil)
    #expect(TimeOfDay(hour: .max) == nil)
  }

  @Test func `timestamps without a zone`() async throws {
    let texts = [
      "1970-01-01T00:00:00": "1970-01-01 00:00:00", "1969-12-31T23:59:59.999999": "1969-12-31 23:59:59.999999",
      "2026-06-21T10:02:03.456789": "2026-06-21 10:02:03.456789", "-0043-03-15T12:00:00": "0044-03-15 12:00:00 BC",
      "-4713-11-24T00:00:00": "4714-11-24 00:00:00 BC", "+200000-01-01T00:00:00": "200000-01-01 00:00:00",
    ]
    try await withDatabase { database, _ in
      for (iso, sql) in texts {
        let local = try #require(LocalTimestamp(iso))
        #expect(local.description == iso)
        #expect(LocalTimestamp(local.day, local.time) == local)
        let row = try #require(try await database.first("SELECT \(local), \(local)::text, \(sql)::timestamp"))
        #expect(try row[0] == local)
        #expect(try row[1] == sql)
        #expect(try row[2] == local)
      }
      let all = texts.keys.sorted().compactMap(LocalTimestamp.init)
      #expect(try await database.value("SELECT \(all)") == all)
      // A zone is not ignored silently.
      let error = try await postgresError { _ = try await database.value("SELECT now() AS t", as: LocalTimestamp.self) }
      #expect(error.message == "column \"t\" has the type timestamptz (oid 1184), wanted LocalTimestamp")
    }
    for microseconds in [Int64.max, .min] {
      #expect(!LocalTimestamp(microseconds: microseconds).description.isEmpty)
    }
    #expect(LocalTimestamp(Day(days: .max), try #require(TimeOfDay(hour: 0))) == nil)
    for text in ["", "T", "2026-05-01", "2026-05-01T18:00:00Z", "2026-05-01 18:00:00"] {
      #expect(LocalTimestamp(text) == nil)
    }
  }

  @Test func `intervals keep months, days and microseconds apart`() async throws {
    let intervals: [(Interval, iso: String)] = [
      (Interval(), "PT0S"), (Interval(months: 14, days: 3, microseconds: 14_706_500_000), "P1Y2M3DT4H5M6.500000S"),
      (Interval(months: -1, days: 2, microseconds: -1), "P-1M2DT-0.000001S"),
      (Interval(microseconds: 3_600_000_000), "PT1H"), (Interval(days: .max), "P2147483647D"),
      (Interval(months: .min, days: .min, microseconds: .max), "P-178956970Y-8M-2147483648DT2562047788H54.775807S"),
      (Interval(months: .max, days: .min, microseconds: .min), "P178956970Y7M-2147483648DT-2562047788H-54.775808S"),
    ]
    try await withDatabase { database, _ in
      for (interval, iso) in intervals {
        let row = try #require(
          try await database.first(
            """
            SELECT \(interval), make_interval(months => \(interval.months), days => \(interval.days)),
              \(interval) IS NULL
            """))
        #expect(try row[0] == interval)
        #expect(try row[1] == Interval(months: interval.months, days: interval.days))
        #expect(interval.description == iso)
      }
      let parsed: Interval? = try await database.value("SELECT '1 year 2 mons 3 days 04:05:06.5'::interval")
      #expect(parsed == intervals[1].0)
      let all = intervals.map(\.0)
      #expect(try await database.value("SELECT \(all)") == all)
      #expect(try await database.value("SELECT \(Interval(days: 1)) + '2026-01-31'::date = '2026-02-01'") == true)
    }
    #expect(Interval(.milliseconds(1_500)) == Interval(microseconds: 1_500_000))
    #expect(Interval(.seconds(Int64.max)) == nil)
    #expect(Interval(microseconds: -7).duration == .microseconds(-7))
    #expect(Interval(days: 1).duration == nil)
  }

  @Test func `infinite times are read and sent as such`() async throws {
    func check<Value: SQLInfinite & Equatable>(_ type: Value.Type, _ name: String, _ database: Database) async throws {
      for (value, text) in [(MaybeInfinite<Value>.infinity, "infinity"), (.negativeInfinity, "-infinity")] {
        let row = try #require(
          try await database.first(
            "SELECT \(value), \(value)::text, \(text)::\(unescaped: name) AS wanted, \([value])"))
        #expect(try row[0] == value)
        #expect(try row[1] == text)
        #expect(try row[2] == value)
        #expect(try row[3] == [value])
        #expect(value.finite == nil)
        let error = #expect(throws: PostgresError.self) { _ = try row["wanted"] as Value }
        #expect(error?.message == "column \"wanted\" holds a value that does not fit, wanted \(Value.self)")
      }
    }
    try await withDatabase { database, _ in
      try await check(Timestamp.self, "timestamptz", database)
      try await check(LocalTimestamp.self, "timestamp", database)
      try await check(Day.self, "date", database)
      let day: MaybeInfinite<Day>? = try await database.value("SELECT '2026-05-01'::date")
      #expect(day?.finite == Day("2026-05-01"))
      let error = try await postgresError { _ = try await database.value("SELECT 1", as: MaybeInfinite<Day>.self) }
      #expect(error.kind == .decoding)
      #expect(MaybeInfinite.negativeInfinity < .finite(Day(days: .min)))
      #expect(MaybeInfinite.finite(Day(days: .max)) < .infinity)
    }
  }

  @Test func `bytes that are not a time are an error`() {
    let bytes = [UInt8](repeating: 0xff, count: 7)
    bytes.withUnsafeBytes { bytes in
      _ = #expect(throws: CellMismatch.malformed) { try Interval(cell: SQLCell(type: 1186, bytes: bytes)) }
      _ = #expect(throws: CellMismatch.malformed) { try LocalTimestamp(cell: SQLCell(type: 1114, bytes: bytes)) }
      _ = #expect(throws: CellMismatch.malformed) { try TimeOfDay(cell: SQLCell(type: 1083, bytes: bytes)) }
    }
    // A time before midnight, and infinite intervals, which only PostgreSQL 17 sends.
    [UInt8](repeating: 0xff, count: 8).withUnsafeBytes { bytes in
      _ = #expect(throws: CellMismatch.malformed) { try TimeOfDay(cell: SQLCell(type: 1083, bytes: bytes)) }
    }
    for (bytes, infinite) in [
      (Interval.infinityBytes, MaybeInfinite<Interval>.infinity), (Interval.negativeInfinityBytes, .negativeInfinity),
    ] {
      bytes.withUnsafeBytes { bytes in
        let cell = SQLCell(type: SQLType.interval.oid, bytes: bytes)
        _ = #expect(throws: CellMismatch.malformed) { try Interval(cell: cell) }
        #expect((try? MaybeInfinite<Interval>(cell: cell)) == infinite)
      }
    }
  }
}
