import Foundation
import Postgres

/// A zone's clock in the years around an event: times are given as it shows them, so that calendars put them where their
/// owner expects them when the zone is looked at.
struct WallClock {
  /// From when on the clock keeps a distance from UTC, in seconds, and the one before.
  private struct Observance {
    let onset: Timestamp
    let before: Int
    let offset: Int
    let isDaylight: Bool
  }

  private static let year = 366 * 86_400
  /// 2100-01-01: Foundation looks for a zone's changes only until a year later.
  private static let horizon = Timestamp(microseconds: 4_102_444_800_000_000)

  /// An IANA name: no character in it needs a quote.
  let zone: String
  /// Never empty; the first begins a year before the event.
  private let observances: [Observance]

  /// Nil where only UTC will do:
  ///
  /// - In UTC itself, and in zones that are a distance from it and no place.
  /// - For an event of more than a year, whose zone would take any number of lines, or too far away.
  /// - Where the clock shows a time for the second time, because it was set back: iCalendar cannot name it.
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

  /// The one that holds at first, and those that follow.
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
      // Else only its name changes.
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

  /// What the clock shows: the wall's date and time.
  func reading(at time: Timestamp) -> String {
    Self.reading(time, observance(at: time).offset)
  }

  private static func reading(_ time: Timestamp, _ offset: Int) -> String {
    // As if it were UTC, without the letter that says so.
    String(time.adding(seconds: offset).iCalendarText.dropLast())
  }

  func describe(in lines: inout ContentLines) {
    lines.add("BEGIN:VTIMEZONE")
    lines.add("TZID:\(zone)")
    for observance in observances {
      let kind = observance.isDaylight ? "DAYLIGHT" : "STANDARD"
      lines.add("BEGIN:\(kind)")
      // The time that the clock showed when it was changed.
      lines.add("DTSTART:\(Self.reading(observance.onset, observance.before))")
      lines.add("TZOFFSETFROM:\(Self.text(ofOffset: observance.before))")
      lines.add("TZOFFSETTO:\(Self.text(ofOffset: observance.offset))")
      lines.add("END:\(kind)")
    }
    lines.add("END:VTIMEZONE")
  }

  /// `+0200`; with seconds only where there are any.
  private static func text(ofOffset offset: Int) -> String {
    let size = abs(offset)
    let text = (offset < 0 ? "-" : "+") + String(format: "%02d%02d", size / 3600, size / 60 % 60)
    return size % 60 == 0 ? text : text + String(format: "%02d", size % 60)
  }
}

extension Timestamp {
  /// In UTC, as iCalendar writes it: `20260501T180000Z`.
  var iCalendarText: String { rfc3339().filter { $0 != "-" && $0 != ":" } }
}
