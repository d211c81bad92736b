import Foundation

/// A length of time, such as `90` (minutes), `2 hours`, `1h30m`, `an hour` or `3 days`.
struct TimeSpan: Equatable {
  /// Days of the calendar, which may have 23 or 25 hours.
  private(set) var days = 0
  private(set) var minutes = 0

  /// Ten years are more than any plan needs.
  private static let limit = 10 * 366 * 24 * 60

  init(_ text: String) throws {
    let refusal = Failure.usage("\"\(text)\" is not a duration. Write for example 90 (minutes), \"2 hours\" or 1h30m.")
    var rest = Substring(text.lowercased().replacing(/\s+|,|\band\b/, with: ""))
    if let number = Int(rest), (1...TimeSpan.limit).contains(number) {
      minutes = number
      return
    }
    guard !rest.isEmpty, text.firstMatch(of: /[0-9]\s+[0-9]/) == nil else { throw refusal }
    var isAfterHours = false
    while !rest.isEmpty {
      guard let part = rest.prefixMatch(of: /(half(?:an?)?|an?|[0-9]{1,7}(?:\.5)?)([a-z]*?)(?=[0-9]|$)/),
        let count = TimeSpan.number(part.1),
        // As in 1h30.
        let unit = TimeSpan.units[part.2.isEmpty && isAfterHours ? "m" : String(part.2)]
      else { throw refusal }
      rest = rest[part.range.upperBound...]
      isAfterHours = part.2.hasPrefix("h")
      let added = count * Double(unit.minutes)
      guard added == added.rounded(), added <= Double(TimeSpan.limit) else { throw refusal }
      if unit.isCalendar, count == count.rounded() {
        days += Int(added) / TimeSpan.minutesOfDay
      } else {
        minutes += Int(added)
      }
    }
    let total = days * TimeSpan.minutesOfDay + minutes
    guard (1...TimeSpan.limit).contains(total) else { throw refusal }
  }

  /// The time after this span, rounded up to a full minute.
  func added(to date: Date, in calendar: Calendar) throws -> Date {
    let day = calendar.date(byAdding: .day, value: days, to: date) ?? date
    let exact = day.timeIntervalSince1970 + Double(minutes) * 60
    return Date(timeIntervalSince1970: (exact / 60).rounded(.up) * 60)
  }

  private static func number(_ text: Substring) -> Double? {
    switch text {
    case "a", "an": 1
    case "half", "halfa", "halfan": 0.5
    default: Double(text)
    }
  }

  private static let minutesOfDay = 24 * 60

  private static let units: [String: (minutes: Int, isCalendar: Bool)] = {
    var units: [String: (minutes: Int, isCalendar: Bool)] = [:]
    for name in ["m", "min", "mins", "minute", "minutes"] { units[name] = (1, false) }
    for name in ["h", "hr", "hrs", "hour", "hours"] { units[name] = (60, false) }
    for name in ["d", "day", "days"] { units[name] = (minutesOfDay, true) }
    for name in ["w", "week", "weeks"] { units[name] = (7 * minutesOfDay, true) }
    return units
  }()
}
