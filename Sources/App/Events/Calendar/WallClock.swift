import Foundation
import Postgres

/// The clocks of a time zone around some events. Times are given as the clocks show them, so that a calendar that shows
/// the zone shows them as expected.
struct WallClock {
  /// An offset from UTC, in seconds, that begins once or each year.
  private struct Observance {
    /// The time on the clocks before it when it begins for the first time.
    let onset: Int
    let before: Int
    let offset: Int
    let isDaylight: Bool
    /// The rule by which it begins again each year.
    var recurrence: String?
  }

  private static let year = 366 * 86_400
  /// 2038-01-01. Several calendars calculate no rule beyond 2037.
  private static let horizon = Timestamp(microseconds: 2_145_916_800_000_000)

  let zone: Zone
  private let first: Timestamp
  private let last: Timestamp
  private let observances: [Observance]

  /// The clocks around an event. Nil if the times must be given in UTC: see ``names(_:)``. So are those of an event that
  /// is longer than a year, which could take any number of lines.
  init?(of plan: Event.Plan, in zones: ZoneDatabase) {
    let (start, end) = (plan.startTime, plan.calendarEnd)
    guard end <= start.adding(seconds: Self.year), let zone = zones[plan.timeZone] else { return nil }
    self.init(zone, from: start.adding(seconds: -Self.year), to: end.adding(seconds: Self.year))
    if !names(plan) { return nil }
  }

  /// The clocks between two times. Nil if the zone is UTC, or a fixed offset from it instead of a place.
  init?(_ zone: Zone, from first: Timestamp, to last: Timestamp) {
    guard !["UTC", "GMT"].contains(zone.name), !zone.name.hasPrefix("Etc/") else { return nil }
    (self.zone, self.first) = (zone, first)
    let seconds = { (time: Timestamp) in Int(time.microseconds / 1_000_000) }
    observances = Self.observances(of: zone, from: seconds(first), through: seconds(min(last, Self.horizon)))
    // Beyond the last irregular change, the rule needs no more lines.
    let isEndless = zone.lastIrregular <= seconds(last) && (zone.rule.daylight == nil || zone.rule.recurs)
    self.last = isEndless ? Self.horizon : min(last, Self.horizon)
  }

  /// Whether an event's times can be given as the clocks show them. They cannot if this clock does not describe them, or
  /// if the clocks show them twice: RFC 5545 then means the first time, but some calendars take the second.
  func names(_ plan: Event.Plan) -> Bool {
    let (start, end) = (plan.startTime, plan.calendarEnd)
    return first <= start && end <= last && end < Self.horizon && !zone.isAmbiguous(at: start)
      && !zone.isAmbiguous(at: end)
  }

  /// Where the zone's rule is regular, two observances that begin each year. Calendars that find such a pair know the
  /// zone as their own. Otherwise, each observance on its own, from the one at the first time on.
  private static func observances(of zone: Zone, from first: Int, through last: Int) -> [Observance] {
    let isYearly = zone.rule.recurs
    if isYearly {
      let pair = zone.rule.transitions(after: first - 2 * year, through: first).suffix(2)
      if let start = pair.first?.time, start > zone.lastIrregular {
        return pair.map { observance($0, recurring: zone.rule) }
      }
    }
    let lastOnce = isYearly ? min(last, zone.lastIrregular) : last
    let once = zone.transitions(after: first, through: lastOnce)
    let offset = zone.offset(at: first)
    // A zone without changes has its first one in winter.
    let isDaylight =
      once.first.map { $0.before.isDaylight != $0.after.isDaylight && isAhead($0.before, $0.after) } ?? false
    var found = [
      Observance(
        onset: first + offset.seconds, before: offset.seconds, offset: offset.seconds, isDaylight: isDaylight)
    ]
    found += once.map { observance($0, recurring: nil) }
    if isYearly, zone.lastIrregular < last {
      let start = max(first, zone.lastIrregular)
      found += zone.rule.transitions(after: start, through: start + 2 * year).prefix(2)
        .map { observance($0, recurring: zone.rule) }
    }
    return found
  }

  private static func isAhead(_ offset: Zone.Offset, _ other: Zone.Offset) -> Bool { offset.seconds > other.seconds }

  /// - Parameter rule: makes the transition each year; nil for one that happens once.
  private static func observance(_ transition: Zone.Transition, recurring rule: ZoneRule?) -> Observance {
    let (before, after) = (transition.before, transition.after)
    // Some files call Ireland's winter its daylight saving time. Calendars expect it in summer.
    let isDaylight = before.isDaylight == after.isDaylight ? after.isDaylight : isAhead(after, before)
    let change = rule?.daylight.map { after == $0.offset ? $0.begins : $0.ends }
    return Observance(
      onset: transition.time + before.seconds, before: before.seconds, offset: after.seconds, isDaylight: isDaylight,
      recurrence: change?.recurrence)
  }

  /// The local date and time.
  func reading(at time: Timestamp) -> String {
    Self.reading(Int(zone.reading(at: time).microseconds / 1_000_000))
  }

  private static func reading(_ seconds: Int) -> String {
    // Formats the local time as if it were UTC, then removes the "Z".
    String(Timestamp(microseconds: 0).adding(seconds: seconds).iCalendarText.dropLast())
  }

  func describe(in lines: inout ContentLines) {
    lines.add("BEGIN:VTIMEZONE")
    lines.add("TZID:\(zone.name)")
    for observance in observances {
      let kind = observance.isDaylight ? "DAYLIGHT" : "STANDARD"
      lines.add("BEGIN:\(kind)")
      lines.add("DTSTART:\(Self.reading(observance.onset))")
      lines.add("TZOFFSETFROM:\(Self.text(ofOffset: observance.before))")
      lines.add("TZOFFSETTO:\(Self.text(ofOffset: observance.offset))")
      if let recurrence = observance.recurrence { lines.add("RRULE:\(recurrence)") }
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

extension ZoneRule {
  /// Whether there is a recurrence rule for each of its changes.
  fileprivate var recurs: Bool { daylight.map { $0.begins.recurrence != nil && $0.ends.recurrence != nil } ?? false }
}

extension ZoneRule.Change {
  /// The change as a recurrence rule (RFC 5545). Nil if it is not on a weekday of a month, or if it may fall into
  /// another month.
  fileprivate var recurrence: String? {
    guard case .weekday(let weekday, let week, let month) = day else { return nil }
    let names = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"]
    // Before midnight of its day, or a day or more after it.
    let shift = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let rule = "FREQ=YEARLY;BYMONTH=\(month);"
    if shift == 0 { return rule + "BYDAY=\(week == 5 ? -1 : week)\(names[weekday])" }
    let length = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    let start = (week == 5 ? length - 6 : week * 7 - 6) + shift
    guard start >= 1, start + 6 <= length, week < 5 || month != 2 else { return nil }
    let days = (start...start + 6).map(String.init).joined(separator: ",")
    return rule + "BYMONTHDAY=\(days);BYDAY=\(names[((weekday + shift) % 7 + 7) % 7])"
  }
}

extension Timestamp {
  /// UTC in the iCalendar format: `20260501T180000Z`.
  var iCalendarText: String { rfc3339().filter { $0 != "-" && $0 != ":" } }
}
