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

/// When an event is: its start, and its end or length.
struct PlannedTime {
  let now: Date
  let zone: TimeZone

  /// - Parameter name: an IANA name; nil for the zone of this machine.
  init(now: Date = Date(), zoneNamed name: String?) throws {
    self.now = now
    guard let name else {
      zone = .current
      return
    }
    guard let zone = TimeZone(identifier: name) else {
      throw Failure.usage("\"\(name)\" is not a time zone. Write, for example, Europe/Lisbon.")
    }
    self.zone = zone
  }

  func start(_ text: String) throws -> Date { try read(text, now: now) }

  /// Asks before an event gets a start in the past, which is most often a typing error.
  func confirm(_ start: Date, isConfirmed: Bool) throws {
    guard start <= now else { return }
    let time = TimeText.here.dayAndTime(start)
    try Prompt.confirm(
      "The start, \(time), is in the past. Continue?", isConfirmed: isConfirmed, refusal: "Nothing was changed.")
  }

  /// - Parameters:
  ///   - until: a time. A time of day alone is the first one after the start.
  ///   - length: a duration, in place of `until`.
  func end(after start: Date, until: String?, length: String?) throws -> Date? {
    if let length { return try TimeSpan(length).added(to: start, in: .gregorian(in: zone)) }
    guard let until else { return nil }
    let end = try read(until, now: TimePhrase.isClockAlone(until) ? start : now)
    guard end > start else { throw Failure.usage("The end \"\(until)\" must be after the start.") }
    return end
  }
  /// Reads a time, and remarks if the clocks show it twice.
  private func read(_ text: String, now: Date) throws -> Date {
    let phrase = TimePhrase(now: now, zone: zone)
    let date = try phrase.date(from: text)
    if let remark = try phrase.remark(about: date, from: text) { Console.note(remark) }
    return date
  }
}
