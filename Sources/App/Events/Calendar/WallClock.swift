import Foundation
import Postgres

/// The clock of a time zone in the years around some events. Times are given in local time, so that a calendar that
/// shows the zone shows them as expected.
struct WallClock {
  /// A period with one offset from UTC, in seconds.
  private struct Observance {
    let onset: Timestamp
    let before: Int
    let offset: Int
    let isDaylight: Bool
  }

  private static let year = 366 * 86_400
  /// 2100-01-01. Foundation lists the transitions of a zone only up to the year after.
  private static let horizon = Timestamp(microseconds: 4_102_444_800_000_000)

  /// An IANA name. Its characters never need quotes.
  let zone: String
  private let first: Timestamp
  private let last: Timestamp
  /// Never empty. The first begins at `first`.
  private let observances: [Observance]

  /// The clock around an event. Nil if the times must be given in UTC: see ``names(_:)``. So are those of an event that
  /// is longer than a year, which would take any number of lines.
  init?(of plan: Event.Plan) {
    let (start, end) = (plan.startTime, plan.endTime ?? plan.startTime)
    guard end <= start.adding(seconds: Self.year), end < Self.horizon else { return nil }
    self.init(zone: plan.timeZone, from: start.adding(seconds: -Self.year), to: end.adding(seconds: Self.year))
    if !names(plan) { return nil }
  }

  /// The clock between two times. Nil if the zone is UTC, or a fixed offset from it instead of a place.
  init?(zone: String, from first: Timestamp, to last: Timestamp) {
    guard !["UTC", "GMT"].contains(zone), !zone.hasPrefix("Etc/"), let timeZone = TimeZone(identifier: zone) else {
      return nil
    }
    (self.zone, self.first, self.last) = (zone, first, last)
    observances = Self.observances(of: timeZone, from: first, to: last)
  }

  /// Whether an event's times can be given in local time. They cannot if this clock does not describe them, or if they
  /// fall into the repeated hour after the clock is set back, which iCalendar cannot name.
  func names(_ plan: Event.Plan) -> Bool {
    let (start, end) = (plan.startTime, plan.endTime ?? plan.startTime)
    return first <= start && end <= last && end < Self.horizon && !isRepeated(at: start) && !isRepeated(at: end)
  }

  /// The observance at the first time, and those that follow.
  private static func observances(of zone: TimeZone, from first: Timestamp, to last: Timestamp) -> [Observance] {
    var date = first.date
    var offset = zone.secondsFromGMT(for: date)
    var found = [
      Observance(
        onset: first, before: offset, offset: offset, isDaylight: zone.isDaylightSavingTime(for: date))
    ]
    while let next = zone.nextDaylightSavingTimeTransition(after: date), next > date, next <= last.date {
      let before = offset
      date = next
      offset = zone.secondsFromGMT(for: date)
      // With the same offset, only the name of the zone changes.
      if offset != before {
        found.append(
          Observance(
            onset: Timestamp(date), before: before, offset: offset, isDaylight: zone.isDaylightSavingTime(for: date)))
      }
    }
    return found
  }

  private func observance(at time: Timestamp) -> Observance {
    observances.last { $0.onset <= time } ?? observances[0]
  }

  private func isRepeated(at time: Timestamp) -> Bool {
    let current = observance(at: time)
    return time < current.onset.adding(seconds: current.before - current.offset)
  }

  /// The local date and time.
  func reading(at time: Timestamp) -> String {
    Self.reading(time, observance(at: time).offset)
  }

  private static func reading(_ time: Timestamp, _ offset: Int) -> String {
    // Formats the local time as if it were UTC, then removes the "Z".
    String(time.adding(seconds: offset).iCalendarText.dropLast())
  }

  func describe(in lines: inout ContentLines) {
    lines.add("BEGIN:VTIMEZONE")
    lines.add("TZID:\(zone)")
    for observance in observances {
      let kind = observance.isDaylight ? "DAYLIGHT" : "STANDARD"
      lines.add("BEGIN:\(kind)")
      // The local time of the change, by the clock before it.
      lines.add("DTSTART:\(Self.reading(observance.onset, observance.before))")
      lines.add("TZOFFSETFROM:\(Self.text(ofOffset: observance.before))")
      lines.add("TZOFFSETTO:\(Self.text(ofOffset: observance.offset))")
      lines.add("END:\(kind)")
    }
    lines.add("END:VTIMEZONE")
  }

  /// A zone of its own, for an object that has no other component.
  static func describeUTC(in lines: inout ContentLines) {
    for line in [
      "BEGIN:VTIMEZONE", "TZID:UTC", "BEGIN:STANDARD", "DTSTART:19700101T000000", "TZOFFSETFROM:+0000",
      "TZOFFSETTO:+0000", "END:STANDARD", "END:VTIMEZONE",
    ] { lines.add(line) }
  }

  /// `+0200`, with seconds only if there are any.
  private static func text(ofOffset offset: Int) -> String {
    let size = abs(offset)
    let text = (offset < 0 ? "-" : "+") + String(format: "%02d%02d", size / 3600, size / 60 % 60)
    return size % 60 == 0 ? text : text + String(format: "%02d", size % 60)
  }
}

extension Timestamp {
  /// UTC in the iCalendar format: `20260501T180000Z`.
  var iCalendarText: String { rfc3339().filter { $0 != "-" && $0 != ":" } }
}
