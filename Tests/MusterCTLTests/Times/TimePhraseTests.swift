import Foundation
import Testing

@testable import musterctl

@Suite struct TimePhraseTests {
  /// A Wednesday at 10:03:27 in Berlin.
  private static let now = "2026-04-29T08:03:27Z"

  private func read(_ text: String, now: String = TimePhraseTests.now, in zone: String = "Europe/Berlin") throws
    -> String
  {
    let phrase = TimePhrase(
      now: try Date.ISO8601FormatStyle().parse(now), zone: try #require(TimeZone(identifier: zone)))
    return try phrase.date(from: text).formatted(.iso8601)
  }

  @Test(arguments: [
    ("tomorrow 19:00", "2026-04-30T17:00:00Z"), ("Tomorrow at 7pm", "2026-04-30T17:00:00Z"),
    ("7:30 PM tomorrow", "2026-04-30T17:30:00Z"), ("today 19:00", "2026-04-29T17:00:00Z"),
    ("tonight 8pm", "2026-04-29T18:00:00Z"), ("fri 18:30", "2026-05-01T16:30:00Z"),
    ("Friday, 18:30", "2026-05-01T16:30:00Z"), ("this fri noon", "2026-05-01T10:00:00Z"),
    ("wed 18:30", "2026-04-29T16:30:00Z"), ("wed 9:00", "2026-05-06T07:00:00Z"),
    ("thurs 0:00", "2026-04-29T22:00:00Z"), ("19:00", "2026-04-29T17:00:00Z"), ("9:00", "2026-04-30T07:00:00Z"),
    ("10:03", "2026-04-30T08:03:00Z"), ("10:04", "2026-04-29T08:04:00Z"), ("12am", "2026-04-29T22:00:00Z"),
    ("12pm", "2026-04-29T10:00:00Z"), ("2026-05-01 18:00", "2026-05-01T16:00:00Z"),
    ("2026-12-01 18:00", "2026-12-01T17:00:00Z"), ("2020-01-01 18:00", "2020-01-01T17:00:00Z"),
    ("2026-05-01T18:00:00Z", "2026-05-01T18:00:00Z"), ("2026-05-01t18:00+05:30", "2026-05-01T12:30:00Z"),
    ("2026-05-01 18:00:09.75-03:00", "2026-05-01T21:00:09Z"), ("1 May 18:00", "2026-05-01T16:00:00Z"),
    ("May 1st, 6pm", "2026-05-01T16:00:00Z"), ("18:00 on the 1st may", "2026-05-01T16:00:00Z"),
    ("1 April 18:00", "2027-04-01T16:00:00Z"), ("1. sept 2027 6:05am", "2027-09-01T04:05:00Z"),
    ("29 feb 12:00", "2028-02-29T11:00:00Z"), ("in 2 hours", "2026-04-29T10:04:00Z"),
    ("in 90", "2026-04-29T09:34:00Z"), ("in an hour", "2026-04-29T09:04:00Z"), ("in 1h30m", "2026-04-29T09:34:00Z"),
    ("in 3 days", "2026-05-02T08:04:00Z"), ("in a week", "2026-05-06T08:04:00Z"),
  ])
  func `reads times as people write them`(text: String, time: String) throws {
    #expect(try read(text) == time)
  }

  @Test(arguments: [
    ("", "no time of day"), ("tomorrow", "no time of day"), ("soon", "\"soon\" does not fit"),
    ("next fri 18:30", "can mean two days"), ("5/1 18:00", "can be two dates"), ("tomorrow midnight", "00:00 or 23:59"),
    ("today 9:00", "Today at 09:00 has passed."),
    ("25:00", "\"25:00\" is not a time of day. Write an hour from 0 to 23."), ("13pm", "not a time of day"),
    ("0am", "not a time of day"), ("10:60", "not a time of day"),
    ("2026-02-30 10:00", "There is no 30 February 2026. Write a day from 1 to 28."),
    ("2026-13-01 10:00", "There is no month 13. Write a month from 1 to 12."),
    ("31 june 10:00", "There is no 31 June. Write a day from 1 to 30."),
    ("31 April 18:00", "There is no 31 April. Write a day from 1 to 30."),
    ("0 may 10:00", "There is no 0 May. Write a day from 1 to 31."),
    ("32 May", "There is no 32 May. Write a day from 1 to 31."),
    ("May 32nd, 6pm", "There is no 32 May. Write a day from 1 to 31."),
    ("18:00 132 May", "There is no 132 May. Write a day from 1 to 31."),
    ("30 feb", "There is no 30 February. Write a day from 1 to 29."),
    ("29 Feb 2027 18:00", "There is no 29 February 2027. Write a day from 1 to 28."),
    ("29 feb 2100 18:00", "There is no 29 February 2100. Write a day from 1 to 28."),
    ("24:00", "\"24:00\" is not a time of day. Write 00:00 with the next day, or 23:59."),
    ("tomorrow 18:75", "\"18:75\" is not a time of day. Write minutes from 00 to 59."),
    ("tomorrow 13:30pm", "Write an hour from 1 to 12 before am or pm."),
    ("tomorrow fri 10:00", "\"fri\" does not fit"), ("10:00 11:00", "\"11:00\" does not fit"),
    ("2026-05-01T25:00:00Z", "\"25:00:00\" is not a time of day. Write an hour from 0 to 23."),
    ("2026-02-30T10:00:00Z", "There is no 30 February 2026. Write a day from 1 to 28."),
    ("2026-05-01T10:00:61Z", "Write seconds from 00 to 59."), ("2026-05-01T10:00+25:00", "is not a time. Write"),
    ("in 2 moons", "is not a duration"), ("in", "is not a duration"),
    ("in 0 minutes", "is not a duration"), ("in 99999999999999999999 hours", "is not a duration"),
    ("in 11 years", "is not a duration"), ("tomorrow 19", "\"19\" does not fit"), ("५ may 10:00", "does not fit"),
  ])
  func `refuses what it does not understand`(text: String, reason: String) throws {
    do {
      Issue.record("\(text) is \(try read(text))")
    } catch let failure as Failure {
      #expect(failure.description.contains(reason), "\(failure.description)")
      #expect(failure.status == .usage)
    }
  }

  @Test func `local times stay where the clocks change`() throws {
    let before = "2026-03-28T12:00:00Z"
    #expect(try read("tomorrow 01:59", now: before) == "2026-03-29T00:59:00Z")
    #expect(try read("tomorrow 03:00", now: before) == "2026-03-29T01:00:00Z")
    #expect(throws: Failure.self) { try read("tomorrow 02:30", now: before) }
    #expect(try read("in 1 day", now: before) == "2026-03-29T11:00:00Z")
    #expect(try read("in 24 hours", now: before) == "2026-03-29T12:00:00Z")
    // Twice in that night: the first one counts.
    #expect(try read("25 oct 02:30", now: before) == "2026-10-25T00:30:00Z")
    #expect(try read("tomorrow 02:30", now: "2026-10-24T10:00:00Z") == "2026-10-25T00:30:00Z")
    // The day begins at 01:00.
    #expect(try read("24 apr 10:00", now: "2026-04-20T10:00:00Z", in: "Africa/Cairo") == "2026-04-24T07:00:00Z")
    #expect(throws: Failure.self) {
      try read("24 apr 0:30", now: "2026-04-20T10:00:00Z", in: "Africa/Cairo")
    }
    #expect(try read("tomorrow 18:00", in: "Asia/Kathmandu") == "2026-04-30T12:15:00Z")
    // At this hour, the zones have different dates.
    #expect(try read("tomorrow 18:00", now: "2026-04-29T20:00:00Z", in: "Asia/Tokyo") == "2026-05-01T09:00:00Z")
  }
  /// The remark about a time, and nil without one.
  private func remark(_ text: String, now: String, in zone: String = "Europe/Berlin") throws -> String? {
    let phrase = TimePhrase(
      now: try Date.ISO8601FormatStyle().parse(now), zone: try #require(TimeZone(identifier: zone)))
    return try phrase.remark(about: try phrase.date(from: text), from: text)
  }

  @Test func `a time that the clocks skip or show twice is pointed out`() throws {
    func refusal(_ text: String, now: String, in zone: String = "Europe/Berlin") -> String {
      do {
        return try read(text, now: now, in: zone)
      } catch { return "\(error)" }
    }
    #expect(
      refusal("29 mar 02:30", now: "2026-03-01T10:00:00Z")
        == "02:30 does not exist on 2026-03-29 in Europe/Berlin: the clocks are set forward then. Write 03:00 or later."
    )
    #expect(
      refusal("24 apr 0:30", now: "2026-04-20T10:00:00Z", in: "Africa/Cairo")
        == "00:30 does not exist on 2026-04-24 in Africa/Cairo: the clocks are set forward then. Write 01:00 or later.")
    #expect(
      refusal("2011-12-30 10:00", now: "2011-12-01T10:00:00Z", in: "Pacific/Apia")
        == "There is no 30 December 2011 in Pacific/Apia: its clocks skip the day. Write another day.")
    let autumn = "2026-10-24T10:00:00Z"
    #expect(
      try remark("tomorrow 02:30", now: autumn) == """
        02:30 occurs twice on 2026-10-25 in Europe/Berlin. The first time counts. For the second, write \
        2026-10-25T02:30:00+01:00.
        """)
    #expect(try read("2026-10-25T02:30:00+01:00") == "2026-10-25T01:30:00Z")
    for text in [
      "tomorrow 01:59", "tomorrow 03:00", "in 15 hours", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00",
    ] { #expect(try remark(text, now: autumn) == nil, "\(text)") }
    for text in ["tomorrow 02:00", "tomorrow 02:59"] { #expect(try remark(text, now: autumn) != nil, "\(text)") }
    #expect(try remark("tomorrow 02:30", now: autumn, in: "Asia/Tokyo") == nil)
    #expect(try remark("tomorrow 02:30", now: "2026-03-28T01:00:00Z", in: "Asia/Kathmandu") == nil)
  }
}
