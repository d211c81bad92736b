import Testing

@testable import musterctl

@Suite struct TimeSpanTests {
  @Test(arguments: [
    ("90", 0, 90), ("2 hours", 0, 120), ("1h30m", 0, 90), ("1h30", 0, 90), ("1 h 30 min", 0, 90), ("1.5 hours", 0, 90),
    ("an hour", 0, 60), ("half an hour", 0, 30), ("a minute", 0, 1), ("2 hours and 15 minutes", 0, 135),
    ("3 days", 3, 0),
    ("a week", 7, 0), ("1w2d", 9, 0), ("1 day 2 hours", 1, 120), ("half a day", 0, 720), ("1.5 days", 0, 2160),
    ("45 Min", 0, 45),
  ])
  func `reads durations`(text: String, days: Int, minutes: Int) throws {
    let span = try TimeSpan(text)
    #expect(span.days == days)
    #expect(span.minutes == minutes)
  }

  @Test(arguments: [
    "", "0", "-5", "h", "5x", "1.5 minutes", "2 months", "1h30m!", "9999999 weeks", "30 1h", "1e3", "٣ hours",
  ])
  func `refuses everything else`(text: String) {
    #expect(throws: Failure.self) { try TimeSpan(text) }
  }
}
