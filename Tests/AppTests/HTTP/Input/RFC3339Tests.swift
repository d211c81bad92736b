import Foundation
import Postgres
import TestSupport
import Testing
@testable import App

@Suite struct RFC3339Tests {
  private func microseconds(_ text: String) -> Int64? { Timestamp(rfc3339: text)?.microseconds }

  @Test func `a time is read and written`() throws {
    let time = try #require(Timestamp(rfc3339: "2026-05-01T18:00:00Z"))
    #expect(time.microseconds == 1_777_658_400_000_000)
    #expect(time.rfc3339() == "2026-05-01T18:00:00Z")
    #expect(time.rfc3339(microseconds: true) == "2026-05-01T18:00:00.000000Z")
    #expect(Timestamp(microseconds: -1).rfc3339(microseconds: true) == "1969-12-31T23:59:59.999999Z")
    #expect(Timestamp(microseconds: 0).rfc3339() == "1970-01-01T00:00:00Z")
  }

  @Test(arguments: 0...12)
  func `a fraction may have any length, and digits below the microsecond are cut off`(_ length: Int) throws {
    let whole = try #require(microseconds("2026-05-01T18:00:00Z"))
    for digits in ["123456789012", "999999999999", "000000000000", "000001999999"] {
      let fraction = digits.prefix(length)
      var counted = -1
      let time = Timestamp(
        rfc3339: "2026-05-01T18:00:00\(length == 0 ? "" : ".")\(fraction)Z", fractionDigits: &counted)
      let expected = Int64(fraction.prefix(6).padding(toLength: 6, withPad: "0", startingAt: 0))
      #expect(time?.microseconds == expected.map { whole + $0 })
      #expect(counted == length)
    }
  }

  @Test func `offsets are converted to UTC`() {
    let noon = microseconds("2026-05-01T12:00:00Z")
    for text in [
      "2026-05-01T14:00:00+02:00", "2026-05-01T06:30:00-05:30", "2026-05-02T01:45:00+13:45",
      "2026-05-01T12:00:00+00:00", "2026-05-01T12:00:00-00:00", "2026-05-02T11:59:00+23:59",
      "2026-04-30T12:01:00-23:59", "2026-05-01t12:00:00z", "2026-05-01 12:00:00Z", "2026-05-01T14:00:00.000+02:00",
    ] {
      #expect(microseconds(text) == noon, "\(text)")
    }
  }

  @Test func `leap days are those of the Gregorian calendar`() {
    for year in ["2024", "2000", "1600", "0000", "0004", "9996"] {
      #expect(microseconds("\(year)-02-29T00:00:00Z") != nil, "\(year)")
      #expect(microseconds("\(year)-02-30T00:00:00Z") == nil, "\(year)")
    }
    for year in ["2023", "1900", "2100", "0001", "9999"] {
      #expect(microseconds("\(year)-02-28T00:00:00Z") != nil, "\(year)")
      #expect(microseconds("\(year)-02-29T00:00:00Z") == nil, "\(year)")
    }
  }

  @Test func `a leap second becomes the second after it`() {
    #expect(microseconds("2016-12-31T23:59:60Z") == microseconds("2017-01-01T00:00:00Z"))
    #expect(microseconds("2016-12-31T23:59:61Z") == nil)
  }

  @Test(arguments: [
    "", "x", "2026-05-01", "2026-05-01T18:00Z", "2026-05-01T18:00:00", "2026-05-01T24:00:00Z", "2026-05-01T18:60:00Z",
    "2026-00-01T18:00:00Z", "2026-13-01T18:00:00Z", "2026-05-00T18:00:00Z", "2026-05-32T18:00:00Z",
    "2026-04-31T18:00:00Z", "2026-5-1T18:00:00Z", "26-05-01T18:00:00Z", "12026-05-01T18:00:00Z",
    "-2026-05-01T18:00:00Z", "+2026-05-01T18:00:00Z", "2026-05-01T18:00:00.Z", "2026-05-01T18:00:00,5Z",
    "2026-05-01T18:00:00.5", " 2026-05-01T18:00:00Z", "2026-05-01T18:00:00Z ", "2026-05-01T18:00:00ZZ",
    "2026-05-01T18:00:00Z+01:00", "2026-05-01T18:00:00+0100", "2026-05-01T18:00:00+01", "2026-05-01T18:00:00+24:00",
    "2026-05-01T18:00:00+01:60", "2026-05-01T18:00:00~01:00", "2026-05-01T18:00:00.-5Z", "2026-05-01T-1:00:00Z",
    "２026-05-01T18:00:00Z", "2026-05-01T18:00:00.5\u{0}Z", "20260501T180000Z",
  ])
  func `text that is not a time is refused`(_ text: String) {
    #expect(Timestamp(rfc3339: text) == nil)
  }

  @Test func `a time cut off after any character is refused`() {
    let text = "2026-05-01T18:00:00.123456+02:00"
    for length in 0..<text.count { #expect(Timestamp(rfc3339: String(text.prefix(length))) == nil) }
  }

  @Test func `a time that RFC 3339 cannot express becomes the nearest one`() {
    #expect(Timestamp(microseconds: .min).rfc3339(microseconds: true) == "0000-01-01T00:00:00.000000Z")
    #expect(Timestamp(microseconds: .max).rfc3339().hasSuffix("Z"))
  }

  @Test func `the years 0000 and 9999 are the first and the last`() throws {
    for text in ["0000-01-01T00:00:00.000000Z", "0000-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"] {
      #expect(try #require(Timestamp(rfc3339: text)).rfc3339(microseconds: true) == text)
    }
    #expect(microseconds("0000-01-01T00:00:00Z") == -62_167_219_200_000_000)
    #expect(microseconds("9999-12-31T23:59:59Z") == 253_402_300_799_000_000)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `random times of ten thousand years survive a round trip`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<20_000 {
      let time = Timestamp(
        microseconds: .random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &random))
      let text = time.rfc3339(microseconds: true)
      #expect(text.utf8.count == 27, "seed \(seed): \(time.microseconds)")
      #expect(Timestamp(rfc3339: text) == time, "seed \(seed): \(time.microseconds)")
      let seconds = try #require(Timestamp(rfc3339: time.rfc3339()))
      #expect((0..<1_000_000).contains(time.microseconds - seconds.microseconds), "seed \(seed): \(time.microseconds)")
    }
  }

  @Test func `every day from 1969 to 2101 matches Foundation`() {
    for day in -400..<48_000 {
      let seconds = Int64(day) * 86_400 + Int64(day + 400) % 86_400
      let date = Date(timeIntervalSince1970: Double(seconds))
      let text = Timestamp(microseconds: seconds * 1_000_000).rfc3339()
      // Foundation's formatter is slow. Every seventh day still covers every day of the month.
      if day % 7 == 0 { #expect(text == date.ISO8601Format()) }
      #expect(Timestamp(rfc3339: text)?.date == date)
    }
  }

  @Test func `times with offsets match Foundation`() throws {
    let formatter = ISO8601DateFormatter()
    for text in [
      "2026-05-01T18:00:00Z", "2000-02-29T23:59:59+14:00", "1970-01-01T00:00:00-12:00", "2038-01-19T03:14:08Z",
      "2099-12-31T23:59:59+05:45", "1999-12-31T00:00:01-09:30",
    ] {
      let date = try #require(formatter.date(from: text))
      #expect(Timestamp(rfc3339: text)?.date == date, "\(text)")
    }
  }
}
