import Foundation
import Testing

@testable import musterctl

@Suite struct TimeTextTests {
  private func date(_ text: String) throws -> Date { try Date.ISO8601FormatStyle().parse(text) }

  @Test func `writes times in the zone, with the year if it is another`() throws {
    let text = TimeText(
      now: try date("2026-04-29T08:00:00Z"), zone: try #require(TimeZone(identifier: "Europe/Lisbon")))
    let start = try date("2026-05-01T18:00:00Z")
    #expect(text.dayAndTime(start) == "Fri 1 May 19:00")
    #expect(text.dayAndTime(try date("2027-01-05T09:05:00Z")) == "Tue 5 Jan 2027 09:05")
    #expect(text.day(try date("2026-05-01T23:30:00Z")) == "2026-05-02")
    #expect(text.range(from: start, to: nil) == "Fri 1 May 19:00")
    #expect(text.range(from: start, to: try date("2026-05-01T21:00:00Z")) == "Fri 1 May 19:00 to 22:00")
    #expect(text.range(from: start, to: try date("2026-05-02T01:00:00Z")) == "Fri 1 May 19:00 to Sat 2 May 02:00")
  }
}
