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

  /// A remark about a local time that the clocks show twice, such as while they are set back.
  ///
  /// - Parameters:
  ///   - date: the first of the two moments.
  ///   - text: the text that means it.
  func remark(about date: Date, from text: String) throws -> String? {
    var words = PhraseWords(text)
    let isExact = try RFC3339.date(from: text) != nil || words.takeIf { $0 == "in" } != nil
    guard !isExact, let second = repetition(of: date) else { return nil }
    let zone = calendar.timeZone
    let local = TimeText(now: now, zone: zone)
    return """
      \(local.clock(date)) occurs twice on \(local.day(date)) in \(zone.identifier). The first time counts. For the \
      second, write \(local.exact(second)).
      """
  }

  /// The second of two moments with the same local time.
  private func repetition(of date: Date) -> Date? {
    let zone = calendar.timeZone
    guard let change = zone.nextDaylightSavingTimeTransition(after: date) else { return nil }
    let second = date + Double(zone.secondsFromGMT(for: date) - zone.secondsFromGMT(for: change))
    return second > date && second >= change ? second : nil
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
      guard date > now else { throw Failure.usage("Today at \(clock) has passed. Write a later time, or another day.") }
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
    let zone = calendar.timeZone
    guard isDate(year, month, day) else {
      let name = CalendarDay(year: year, month: month, day: day).name
      throw Failure.usage("There is no \(name) in \(zone.identifier): its clocks skip the day. Write another day.")
    }
    guard let date = calendar.date(from: parts),
      calendar.component(.hour, from: date) == clock.hour, calendar.component(.minute, from: date) == clock.minute
    else {
      let name = "\(year)-\(month.twoDigits)-\(day.twoDigits)"
      let start = calendar.date(from: DateComponents(year: year, month: month, day: day - 1, hour: 12))
      let end = start.flatMap { zone.nextDaylightSavingTimeTransition(after: $0) }
      let advice = end.map { " Write \(TimeText(now: now, zone: zone).clock($0)) or later." } ?? ""
      throw Failure.usage(
        "\(clock) does not exist on \(name) in \(zone.identifier): the clocks are set forward then.\(advice)")
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

/// A time of day, such as `19:00`, `7pm`, `7:30 pm` or `noon`.
private struct PhraseClock: CustomStringConvertible {
  let hour: Int
  let minute: Int

  var description: String { "\(hour.twoDigits):\(minute.twoDigits)" }

  init?(from words: inout PhraseWords) throws {
    if words.takeIf({ $0 == "noon" }) != nil {
      self.init(hour: 12, minute: 0)
      return
    }
    if words.next == "midnight" {
      throw Failure.usage("\"midnight\" can be the beginning or the end of a day. Write 00:00 or 23:59.")
    }
    guard let clock = try words.attempt(PhraseClock.read) else { return nil }
    self = clock
  }

  private init(hour: Int, minute: Int) {
    self.hour = hour
    self.minute = minute
  }

  private static func read(_ words: inout PhraseWords) throws -> PhraseClock? {
    guard let word = words.takeIf({ $0.first?.isASCIIDigit == true }),
      let match = word.wholeMatch(of: /([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?/),
      let hour = Int(match.1), let minute = match.2.map({ Int($0) }) ?? 0
    else { return nil }
    let half = match.3.map(String.init) ?? words.takeIf { ["am", "pm"].contains($0) }
    // A number alone is a day.
    guard half != nil || match.2 != nil else { return nil }
    try ClockTime.check(word, hour: hour, minute: minute, hasHalf: half != nil)
    guard let half else { return PhraseClock(hour: hour, minute: minute) }
    return PhraseClock(hour: hour % 12 + (half == "pm" ? 12 : 0), minute: minute)
  }
}

/// A day, such as `tomorrow`, `fri`, `1 May`, `May 1 2027` or `2026-05-01`.
private enum PhraseDay {
  /// Days from today.
  case relative(Int)
  /// The next such day; 1 is Sunday, as for Foundation.
  case weekday(Int)
  /// Without a year, the next such date.
  case date(year: Int?, month: Int, day: Int)

  init?(from words: inout PhraseWords) throws {
    if let days = words.take(["today": 0, "tonight": 0, "tomorrow": 1]) {
      self = .relative(days)
    } else if let weekday = words.take(PhraseDay.weekdays) {
      self = .weekday(weekday)
    } else if let day = words.attempt(PhraseDay.readISO) ?? words.attempt(PhraseDay.readNamed) {
      try day.check()
      self = .date(year: day.year, month: day.month, day: day.day)
    } else if words.next == "next" {
      throw Failure.usage(
        "\"next\" can mean two days. Write the weekday alone for the one that comes first, or a date.")
    } else if words.next.contains("/") {
      throw Failure.usage("\"\(words.next)\" can be two dates. Write, for example, 2026-05-01 or \"1 May\".")
    } else {
      return nil
    }
  }

  private static func readISO(_ words: inout PhraseWords) -> CalendarDay? {
    guard let word = words.takeIf({ $0.contains("-") }),
      let match = word.wholeMatch(of: /([0-9]{4})-([0-9]{2})-([0-9]{2})/),
      let year = Int(match.1), let month = Int(match.2), let day = Int(match.3)
    else { return nil }
    return CalendarDay(year: year, month: month, day: day)
  }

  private static func readNamed(_ words: inout PhraseWords) -> CalendarDay? {
    let month: Int
    let day: Int
    if let first = words.take(months) {
      guard let number = readDay(&words) else { return nil }
      (month, day) = (first, number)
    } else {
      guard let number = readDay(&words), let name = words.take(months) else { return nil }
      (month, day) = (name, number)
    }
    let year = words.takeIf { $0.count == 4 && $0.allSatisfy(\.isASCIIDigit) }.flatMap { Int($0) }
    return CalendarDay(year: year, month: month, day: day)
  }

  private static func readDay(_ words: inout PhraseWords) -> Int? {
    words.takeIf { $0.wholeMatch(of: /[0-9]{1,3}(st|nd|rd|th|\.)?/) != nil }
      .flatMap { Int($0.prefix(while: \.isASCIIDigit)) }
  }

  private static let weekdays = names(
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"],
    others: ["tues": 3, "weds": 4, "thur": 5, "thurs": 5])

  private static let months = names(CalendarDay.months.map { $0.lowercased() }, others: ["sept": 9])

  /// The numbers of names and of their first three letters, from 1.
  private static func names(_ names: [String], others: [String: Int]) -> [String: Int] {
    var numbers = others
    for (index, name) in names.enumerated() {
      numbers[name] = index + 1
      numbers[String(name.prefix(3))] = index + 1
    }
    return numbers
  }
}

/// The words of a time, taken from the left.
private struct PhraseWords {
  private var words: ArraySlice<String>

  init(_ text: String) {
    words =
      text.lowercased().split { $0.isWhitespace || $0 == "," }.map(String.init)
      .filter { !["at", "on", "the", "this"].contains($0) }[...]
  }

  var isEmpty: Bool { words.isEmpty }
  var next: String { words.first ?? "" }
  var rest: String { words.joined(separator: " ") }

  /// Takes the next word if there is one and `condition` holds for it.
  mutating func takeIf(_ condition: (String) -> Bool) -> String? {
    guard let word = words.first, condition(word) else { return nil }
    return words.removeFirst()
  }

  /// Takes the next word if it is a key of `values`, and returns its value.
  mutating func take<Value>(_ values: [String: Value]) -> Value? {
    takeIf { values[$0] != nil }.flatMap { values[$0] }
  }

  /// Takes the next words if `reading` returns a value; otherwise takes nothing.
  mutating func attempt<Value>(_ reading: (inout PhraseWords) throws -> Value?) rethrows -> Value? {
    var trial = self
    guard let value = try reading(&trial) else { return nil }
    self = trial
    return value
  }
}
