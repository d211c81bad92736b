import Postgres

/// The rule by which a zone's clocks change each year, as POSIX writes it in the variable `TZ`, and as time zone files
/// end.
struct ZoneRule: Sendable, Equatable {
  /// When the clocks change.
  struct Change: Sendable, Equatable {
    enum DayRule: Sendable, Equatable {
      /// The nth weekday of a month, from 0 for Sunday. The fifth is the last one.
      case weekday(Int, week: Int, month: Int)
      /// From 1, where February has 28 days.
      case dayOfCommonYear(Int)
      /// From 0, where a leap year has a day more.
      case dayOfYear(Int)
    }

    let day: DayRule
    /// After midnight on the clocks before the change. May be negative, or more than a day.
    let seconds: Int
  }

  struct Daylight: Sendable, Equatable {
    let offset: Zone.Offset
    let begins: Change
    let ends: Change
  }

  let standard: Zone.Offset
  /// Nil if the clocks never change.
  let daylight: Daylight?

  func offset(at time: Int) -> Zone.Offset {
    guard daylight != nil else { return standard }
    let year = Self.year(of: time)
    let changes = transitions(inYears: year - 1...year + 1)
    return changes.last { $0.time <= time }?.after ?? changes.first?.before ?? standard
  }

  func transitions(after start: Int, through end: Int) -> [Zone.Transition] {
    guard daylight != nil, start < end else { return [] }
    return transitions(inYears: Self.year(of: start) - 1...Self.year(of: end) + 1)
      .filter { $0.time > start && $0.time <= end }
  }

  private func transitions(inYears years: ClosedRange<Int>) -> [Zone.Transition] {
    guard let daylight else { return [] }
    var found: [Zone.Transition] = []
    for year in years {
      let begins = daylight.begins.reading(in: year) - standard.seconds
      let ends = daylight.ends.reading(in: year) - daylight.offset.seconds
      found.append(Zone.Transition(time: begins, before: standard, after: daylight.offset))
      found.append(Zone.Transition(time: ends, before: daylight.offset, after: standard))
    }
    // Where daylight saving time lasts the whole year, one ends when the next begins: then nothing changes.
    found.sort { $0.time != $1.time ? $0.time < $1.time : $0.before == daylight.offset && $1.before == standard }
    var changes: [Zone.Transition] = []
    for change in found {
      if let last = changes.last, last.time == change.time { changes.removeLast() } else { changes.append(change) }
    }
    return changes
  }

  private static func year(of time: Int) -> Int {
    Day(days: time >= 0 ? time / 86_400 : (time - 86_399) / 86_400).calendar.year
  }
}

extension ZoneRule.Change {
  /// The reading of the clocks before the change.
  fileprivate func reading(in year: Int) -> Int { days(in: year) * 86_400 + seconds }

  /// Days since 1970.
  private func days(in year: Int) -> Int {
    func first(of month: Int) -> Int { Day(year: year, month: month, day: 1)?.days ?? 0 }
    switch day {
    case .dayOfYear(let day): return first(of: 1) + day
    case .dayOfCommonYear(let day):
      let isLeap = first(of: 3) - first(of: 2) == 29
      return first(of: 1) + day - 1 + (isLeap && day >= 60 ? 1 : 0)
    case .weekday(let weekday, let week, let month):
      let start = first(of: month)
      let end = month == 12 ? start + 31 : first(of: month + 1)
      // January 1, 1970 was a Thursday.
      let firstWeekday = (start % 7 + 7 + 4) % 7
      let found = start + (weekday - firstWeekday + 7) % 7 + (week - 1) * 7
      return found < end ? found : found - 7
    }
  }
}

extension ZoneRule {
  /// Parses a rule such as `EST5EDT,M3.2.0,M11.1.0` or `<+1030>-10:30<+11>-11,M10.1.0,M4.1.0`. Nil if it is malformed.
  init?(_ text: some StringProtocol) {
    var rest = Array(text.utf8)[...]
    guard Self.skipName(&rest), let standard = Self.time(&rest, hours: 24) else { return nil }
    self.standard = Zone.Offset(seconds: -standard, isDaylight: false)
    guard !rest.isEmpty else {
      daylight = nil
      return
    }
    guard Self.skipName(&rest) else { return nil }
    var offset = 3600 - standard
    if rest.first != UInt8(ascii: ",") {
      guard let given = Self.time(&rest, hours: 24) else { return nil }
      offset = -given
    }
    guard let begins = Self.change(&rest), let ends = Self.change(&rest), rest.isEmpty else { return nil }
    daylight = Daylight(offset: Zone.Offset(seconds: offset, isDaylight: true), begins: begins, ends: ends)
  }

  private static func skip(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// Letters, or anything in angle brackets.
  private static func skipName(_ rest: inout ArraySlice<UInt8>) -> Bool {
    if skip("<", &rest) {
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")), end - rest.startIndex >= 3 else { return false }
      rest = rest[(end + 1)...]
      return true
    }
    let name = rest.prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    rest = rest[name.endIndex...]
    return name.count >= 3
  }

  private static func number(_ rest: inout ArraySlice<UInt8>, in range: ClosedRange<Int>) -> Int? {
    let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard (1...3).contains(digits.count) else { return nil }
    rest = rest[digits.endIndex...]
    let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    return range.contains(value) ? value : nil
  }

  /// `[+-]hh[:mm[:ss]]`, in seconds.
  private static func time(_ rest: inout ArraySlice<UInt8>, hours: Int) -> Int? {
    let sign = skip("-", &rest) ? -1 : 1
    if sign == 1 { _ = skip("+", &rest) }
    guard var seconds = number(&rest, in: 0...hours).map({ $0 * 3600 }) else { return nil }
    for unit in [60, 1] where skip(":", &rest) {
      guard let value = number(&rest, in: 0...59) else { return nil }
      seconds += value * unit
    }
    return sign * seconds
  }

  /// `,Mm.w.d`, `,Jn` or `,n`, each with `/time` or without it.
  private static func change(_ rest: inout ArraySlice<UInt8>) -> Change? {
    guard skip(",", &rest) else { return nil }
    let day: Change.DayRule
    if skip("M", &rest) {
      guard let month = number(&rest, in: 1...12), skip(".", &rest), let week = number(&rest, in: 1...5),
        skip(".", &rest), let weekday = number(&rest, in: 0...6)
      else { return nil }
      day = .weekday(weekday, week: week, month: month)
    } else if skip("J", &rest) {
      guard let number = number(&rest, in: 1...365) else { return nil }
      day = .dayOfCommonYear(number)
    } else {
      guard let number = number(&rest, in: 0...365) else { return nil }
      day = .dayOfYear(number)
    }
    guard skip("/", &rest) else { return Change(day: day, seconds: 2 * 3600) }
    // A week in either direction: RFC 9636.
    return time(&rest, hours: 167).map { Change(day: day, seconds: $0) }
  }
}
