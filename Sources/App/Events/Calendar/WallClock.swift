import Foundation
import Postgres

/// The clock of a time zone in the years around an event. Times are given in local time, so that a calendar that shows
/// the zone shows them as expected.
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
  /// Never empty. The first begins a year before the event.
  private let observances: [Observance]

  /// Nil if the times must be given in UTC:
  ///
  /// - The zone is UTC, or a fixed offset from it instead of a place.
  /// - The event is longer than a year, which would take any number of lines, or too far in the future.
  /// - A time falls into the repeated hour after the clock is set back. iCalendar cannot name it.
  init?(of plan: Event.Plan) {
    let (start, end) = (plan.startTime, plan.endTime ?? plan.startTime)
    guard !["UTC", "GMT"].contains(plan.timeZone), !plan.timeZone.hasPrefix("Etc/"),
      end <= start.adding(seconds: Self.year), end < Self.horizon,
      let timeZone = TimeZone(identifier: plan.timeZone)
    else { return nil }
    zone = plan.timeZone
    observances = Self.observances(
      of: timeZone, from: start.adding(seconds: -Self.year), to: end.adding(seconds: Self.year))
    if isRepeated(at: start) || isRepeated(at: end) { return nil }
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
