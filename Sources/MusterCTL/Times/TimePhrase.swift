import Foundation

/// Reads a time as people write it, such as `tomorrow 19:00`, `fri 18:30`, `1 May 6pm`, `2026-05-01 18:00` or
/// `in 2 hours`.
struct TimePhrase {
  /// The moment to which times are relative.
  let now: Date
  private let calendar: Calendar

  /// - Parameter zone: the zone of times that name none.
  init(now: Date, zone: TimeZone) {
    self.now = now
    calendar = Calendar.gregorian(in: zone)
  }

  func date(from text: String) throws -> Date {
    if let date = try RFC3339.date(from: text) { return date }
    var words = PhraseWords(text)
    if words.takeIf({ $0 == "in" }) != nil { return try TimeSpan(words.rest).added(to: now, in: calendar) }
    var day: PhraseDay?
    var clock: PhraseClock?
    while !words.isEmpty {
      if clock == nil, let found = try PhraseClock(from: &words) {
        clock = found
      } else if day == nil, let found = try PhraseDay(from: &words) {
        day = found
      } else {
        throw Failure.usage("\"\(text)\" is not a time: \"\(words.next)\" does not fit. \(TimePhrase.advice)")
      }
    }
    guard let clock else { throw Failure.usage("\"\(text)\" has no time of day. \(TimePhrase.advice)") }
    return try date(on: day, at: clock)
  }

  /// Whether a text is a time of day without a day.
  static func isClockAlone(_ text: String) -> Bool {
    var words = PhraseWords(text)
    return (try? PhraseClock(from: &words)) != nil && words.isEmpty
  }

  private static let advice = "Write, for example, \"tomorrow 19:00\", \"fri 18:30\", \"1 May 6pm\" or \"in 2 hours\"."

  private func date(on day: PhraseDay?, at clock: PhraseClock) throws -> Date {
    switch day {
    case nil:
      let today = try date(daysFromNow: 0, clock)
      return today > now ? today : try date(daysFromNow: 1, clock)
    case .relative(let days):
      let date = try date(daysFromNow: days, clock)
      guard date > now else { throw Failure.usage("Today at \(clock) has passed.") }
      return date
    case .weekday(let weekday):
      let days = (weekday - calendar.component(.weekday, from: now) + 7) % 7
      let date = try date(daysFromNow: days, clock)
      return date > now ? date : try self.date(daysFromNow: days + 7, clock)
    case .date(let year?, let month, let day):
      return try date(year, month, day, clock)
    case .date(nil, let month, let day):
      let year = calendar.component(.year, from: now)
      // February 29 may be years away.
      for candidate in year...year + 8 where isDate(candidate, month, day) {
        let date = try date(candidate, month, day, clock)
        if date > now { return date }
      }
      return try date(year, month, day, clock)
    }
  }

  private func date(daysFromNow days: Int, _ clock: PhraseClock) throws -> Date {
    // From noon, because a day may begin or end with a change of the clocks.
    let noon = calendar.date(bySettingHour: 12, minute: 0, second: 0, of: now) ?? now
    let then = calendar.date(byAdding: .day, value: days, to: noon) ?? noon
    let parts = calendar.dateComponents([.year, .month, .day], from: then)
    return try date(parts.year ?? 0, parts.month ?? 0, parts.day ?? 0, clock)
  }

  /// - Returns: the first of two moments if the clocks are set back over this time.
  private func date(_ year: Int, _ month: Int, _ day: Int, _ clock: PhraseClock) throws -> Date {
    let parts = DateComponents(year: year, month: month, day: day, hour: clock.hour, minute: clock.minute)
    let name = "\(year)-\(month.twoDigits)-\(day.twoDigits)"
    guard isDate(year, month, day) else { throw Failure.usage("\(name) is not a date.") }
    guard let date = calendar.date(from: parts),
      calendar.component(.hour, from: date) == clock.hour, calendar.component(.minute, from: date) == clock.minute
    else {
      let zone = calendar.timeZone.identifier
      throw Failure.usage("\(clock) does not exist on \(name) in \(zone): the clocks are set forward then.")
    }
    return date
  }

  private func isDate(_ year: Int, _ month: Int, _ day: Int) -> Bool {
    // Noon, because a day may begin with a change of the clocks.
    guard let noon = calendar.date(from: DateComponents(year: year, month: month, day: day, hour: 12)) else {
      return false
    }
    let parts = calendar.dateComponents([.year, .month, .day], from: noon)
    return parts.year == year && parts.month == month && parts.day == day
  }
}
