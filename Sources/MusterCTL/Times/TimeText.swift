import Foundation
import RegexBuilder

/// Writes times for people, in English and in one time zone.
struct TimeText {
  /// The time without which a year is shown.
  let now: Date
  let zone: TimeZone

  /// Such as `Fri 1 May 19:00`, with the year if it is not this one.
  func dayAndTime(_ date: Date) -> String {
    let calendar = Calendar.gregorian(in: zone)
    let parts = calendar.dateComponents([.year, .month, .day, .weekday, .hour, .minute], from: date)
    let year = parts.year ?? 0
    let day =
      "\(TimeText.weekdays[(parts.weekday ?? 1) - 1]) \(parts.day ?? 0) \(TimeText.months[(parts.month ?? 1) - 1])"
    let shownYear = year == calendar.component(.year, from: now) ? "" : " \(year)"
    return "\(day)\(shownYear) \((parts.hour ?? 0).twoDigits):\((parts.minute ?? 0).twoDigits)"
  }

  /// Such as `2026-05-01`.
  func day(_ date: Date) -> String {
    let parts = Calendar.gregorian(in: zone).dateComponents([.year, .month, .day], from: date)
    return "\(parts.year ?? 0)-\((parts.month ?? 0).twoDigits)-\((parts.day ?? 0).twoDigits)"
  }

  /// Such as `19:00`.
  func clock(_ date: Date) -> String { String(dayAndTime(date).suffix(5)) }

  /// Such as `2026-05-01T18:00:00+02:00`.
  func exact(_ date: Date) -> String {
    date.formatted(Date.ISO8601FormatStyle(timeZoneSeparator: .colon, timeZone: zone))
  }

  /// Such as `Fri 1 May 19:00 to 22:00`, or with both days if they differ.
  func range(from start: Date, to end: Date?) -> String {
    end.map { "\(dayAndTime(start)) to \(shortened($0, after: start))" } ?? dayAndTime(start)
  }

  /// Such as `Fri 1 May 19:00 → 20:00`, or with both days if they differ.
  func move(from old: Date, to new: Date) -> String { "\(dayAndTime(old)) → \(shortened(new, after: old))" }

  private func shortened(_ date: Date, after other: Date) -> String {
    let isOneDay = Calendar.gregorian(in: zone).isDate(date, inSameDayAs: other)
    return isOneDay ? clock(date) : dayAndTime(date)
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}

extension TimeText {
  /// Now, in the time zone of this machine or of the variable `TZ`.
  static var here: TimeText { TimeText(now: Date(), zone: .current) }
}

/// Times in the form of the API, such as `2026-05-01T18:00:00+02:00`.
enum RFC3339 {
  /// - Returns: nil if the text is not of this form, or has no offset.
  /// - Throws: if the text is of this form, but there is no such date.
  static func date(from text: String) throws -> Date? {
    let date = /([0-9]{4})-([0-9]{2})-([0-9]{2})/
    let time = /([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?/
    let form = Regex {
      date
      /[Tt ]/
      time
      Optionally(" ")
      Capture { /[Zz]|[+-][0-9]{2}:[0-9]{2}/ }
    }
    guard let match = text.wholeMatch(of: form) else { return nil }
    let (_, year, month, day, hour, minute, second, offset) = match.output
    // The parser takes February 30 for March 2.
    try CalendarDay(year: Int(year), month: Int(month) ?? 0, day: Int(day) ?? 0).check()
    try ClockTime.check(
      [hour, minute, second].compactMap { $0 }.joined(separator: ":"), hour: Int(hour) ?? 0, minute: Int(minute) ?? 0,
      second: second.flatMap { Int($0) } ?? 0)
    let exact = "\(year)-\(month)-\(day)T\(hour):\(minute):\(second ?? "00")\(offset.uppercased())"
    guard let moment = try? Date.ISO8601FormatStyle().parse(exact) else {
      throw Failure.usage("\"\(text)\" is not a time. Write, for example, 2026-05-01T18:00:00+02:00.")
    }
    return moment
  }
}

extension Calendar {
  static func gregorian(in zone: TimeZone) -> Calendar {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    return calendar
  }
}

extension Int {
  /// At least two digits, such as `07`.
  var twoDigits: String { self < 10 ? "0\(self)" : "\(self)" }
}

extension Character {
  var isASCIIDigit: Bool { isASCII && isNumber }
}
