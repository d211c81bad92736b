import Postgres
import Testing

@testable import App

/// The calendar is PostgreSQL's.
@Suite struct LocalTimestampTests {
  @Test func `days, months and years, before Christ and after 9999`() async throws {
    let days: [(year: Int, month: Int, day: Int, sql: String)] = [
      (1970, 1, 1, "1970-01-01"), (2000, 2, 29, "2000-02-29"), (1900, 2, 28, "1900-02-28"),
      (1900, 3, 1, "1900-03-01"), (1, 1, 1, "0001-01-01"), (0, 12, 31, "0001-12-31 BC"), (0, 2, 29, "0001-02-29 BC"),
      (-43, 3, 15, "0044-03-15 BC"), (-4713, 11, 24, "4714-11-24 BC"), (5_874_897, 12, 31, "5874897-12-31"),
      (10_000, 1, 1, "10000-01-01"),
    ]
    try await TestApp.run { app in
      for (year, month, number, sql) in days {
        let day = try #require(Day(year: year, month: month, day: number))
        #expect(day.calendar == (year, month, number))
        #expect(try await app.value("SELECT (\(sql)::date - '1970-01-01'::date)::int8") == day.days, "\(sql)")
      }
      // Days of every part of the calendar's eras.
      let some = stride(from: -700_000, to: 2_900_000, by: 997).map { Day(days: $0) }
      let wrong: Int? = try await app.value(
        """
        SELECT count(*)
        FROM unnest(
          \(some.map(\.days)), \(some.map { $0.calendar.year }), \(some.map { $0.calendar.month }), \(some.map { $0.calendar.day })
        ) AS d (days, year, month, day)
        WHERE make_date(year::int, month::int, day::int) <> '1970-01-01'::date + days::int
        """)
      #expect(wrong == 0)
    }
  }

  @Test func `a day that the calendar does not have is nil, and no day traps`() {
    for (year, month, day) in [
      (2023, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (2026, 1, 32),
      (.max, 1, 1), (.min, 12, 31), (2026, .max, 1), (2026, 1, .min),
    ] {
      #expect(Day(year: year, month: month, day: day) == nil)
    }
    for days in [Int.max, .min, .max - 1, .min + 1, 0] {
      let day = Day(days: days).calendar
      #expect((1...12).contains(day.month) && (1...31).contains(day.day))
    }
  }

  @Test func `a reading has a day and a time of day, even before 1970`() {
    for (microseconds, day, second) in [
      (0, 0, 0), (86_399_999_999, 0, 86_399), (86_400_000_000, 1, 0), (-1, -1, 86_399), (-86_400_000_000, -1, 0),
    ] {
      let reading = LocalTimestamp(microseconds: Int64(microseconds))
      #expect(reading.day == Day(days: day) && reading.secondOfDay == second)
    }
    for microseconds in [Int64.max, .min] {
      #expect(LocalTimestamp(microseconds: microseconds).day.calendar.month > 0)
    }
  }
}
