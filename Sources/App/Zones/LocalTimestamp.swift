import Postgres

/// The reading of a clock on the wall: a day and a time of day without a zone. It is no point in time: for that, see
/// `Timestamp`.
struct LocalTimestamp: Sendable, Equatable {
  /// Microseconds since 1970-01-01 00:00:00 on the same clock.
  let microseconds: Int64

  private static let microsecondsOfDay: Int64 = 86_400_000_000

  var day: Day {
    let (days, rest) = microseconds.quotientAndRemainder(dividingBy: Self.microsecondsOfDay)
    return Day(days: Int(rest < 0 ? days - 1 : days))
  }

  /// Whole seconds since midnight.
  var secondOfDay: Int {
    let rest = microseconds % Self.microsecondsOfDay
    return Int((rest < 0 ? rest + Self.microsecondsOfDay : rest) / 1_000_000)
  }
}

/// A day of the Gregorian calendar, extended to all days before and after its use, as in PostgreSQL.
struct Day: Sendable, Equatable {
  /// Since 1970-01-01.
  let days: Int

  init(days: Int) {
    self.days = days
  }

  /// A day of the calendar; nil if the month has no such day.
  ///
  /// - Parameters:
  ///   - year: the year 0 is 1 BC, and -1 is 2 BC. At most ten million before or after it, more than PostgreSQL holds.
  ///   - month: 1 to 12.
  ///   - day: from 1.
  init?(year: Int, month: Int, day: Int) {
    guard Self.years.contains(year), (1...12).contains(month), day >= 1, day <= Self.length(of: month, in: year)
    else { return nil }
    // Years begin in March, so that a leap day is the last one of its year.
    let (marchYear, marchMonth) = (month > 2 ? year : year - 1, (month + 9) % 12)
    let (era, yearOfEra) = Self.divide(marchYear, by: 400)
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    days = era * Self.daysOfEra + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - Self.marchOfYear0
  }

  /// The year, in which 0 is 1 BC and -1 is 2 BC; the month from 1; the day from 1.
  var calendar: (year: Int, month: Int, day: Int) {
    // First the whole eras, so that no sum is out of range.
    var (era, dayOfEra) = Self.divide(days, by: Self.daysOfEra)
    era += Self.marchOfYear0 / Self.daysOfEra
    dayOfEra += Self.marchOfYear0 % Self.daysOfEra
    if dayOfEra >= Self.daysOfEra { (era, dayOfEra) = (era + 1, dayOfEra - Self.daysOfEra) }
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }

  private static let years = -10_000_000...10_000_000
  /// The days of 400 years.
  private static let daysOfEra = 146_097
  /// Days from 0000-03-01 to 1970-01-01.
  private static let marchOfYear0 = 719_468

  private static func length(of month: Int, in year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }

  /// Rounds the quotient down, so that the remainder is never negative.
  private static func divide(_ value: Int, by divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

/// A time, and the offset from UTC with which it was planned. Together they are a reading of the clocks in a zone.
struct ZonedTime: Sendable, Equatable {
  let time: Timestamp
  /// In seconds east of UTC.
  let offset: Int

  var reading: LocalTimestamp { LocalTimestamp(microseconds: time.adding(seconds: offset).microseconds) }
}

/// A time as a client gives it.
enum GivenTime: Sendable {
  case instant(Timestamp)
  /// A reading of the clocks in the event's zone.
  case reading(LocalTimestamp)
}

extension Zone {
  /// In seconds east of UTC.
  func offset(at time: Timestamp) -> Int { offset(at: time.wholeSeconds).seconds }

  /// The time on the zone's clocks.
  func reading(at time: Timestamp) -> LocalTimestamp { ZonedTime(time: time, offset: offset(at: time)).reading }

  func time(_ given: GivenTime) -> ZonedTime {
    switch given {
    case .instant(let time): ZonedTime(time: time, offset: offset(at: time))
    case .reading(let reading): time(showing: reading)
    }
  }

  /// The time at which the zone's clocks show a reading.
  ///
  /// - Parameter offset: decides while the clocks show the reading with it. Otherwise, the first of two times counts, or
  ///   the offset before the gap.
  func time(showing reading: LocalTimestamp, preferring offset: Int? = nil) -> ZonedTime {
    let wall = Timestamp(microseconds: reading.microseconds)
    let offset = self.offset(showing: wall.wholeSeconds, preferring: offset)
    return ZonedTime(time: wall.adding(seconds: -offset), offset: offset)
  }

  /// Whether the zone's clocks show the reading of this time twice.
  func isAmbiguous(at time: Timestamp) -> Bool {
    offsets(showing: time.wholeSeconds + offset(at: time)).count > 1
  }
}

extension Timestamp {
  /// Rounded down.
  fileprivate var wholeSeconds: Int {
    Int(microseconds >= 0 ? microseconds / 1_000_000 : (microseconds - 999_999) / 1_000_000)
  }
}
