/// A day as people write it. There may be no such day.
struct CalendarDay {
  /// Nil for a day of any year.
  let year: Int?
  let month: Int
  let day: Int

  /// - Throws: `Failure` if no calendar has the day.
  func check() throws {
    guard (1...12).contains(month) else {
      throw Failure.usage("There is no month \(month). Write a month from 1 to 12.")
    }
    guard (1...length).contains(day) else {
      throw Failure.usage("There is no \(self.name). Write a day from 1 to \(length).")
    }
  }

  /// Such as `29 February 2027`.
  var name: String { "\(day) \(CalendarDay.months[month - 1])" + (year.map { " \($0)" } ?? "") }

  /// The number of days of the month.
  private var length: Int {
    switch month {
    case 2: year.map { $0.isMultiple(of: 4) && (!$0.isMultiple(of: 100) || $0.isMultiple(of: 400)) } ?? true ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]
}

/// A time of day as people write it. There may be no such time.
enum ClockTime {
  /// - Parameter text: as the user wrote it, such as `25:00` or `13pm`.
  static func check(_ text: String, hour: Int, minute: Int, second: Int = 0, hasHalf: Bool = false) throws {
    let advice: String
    switch (hour, minute) {
    case (24, 0) where !hasHalf: advice = "Write 00:00 with the next day, or 23:59."
    case _ where !(hasHalf ? 1...12 : 0...23).contains(hour):
      advice = hasHalf ? "Write an hour from 1 to 12 before am or pm." : "Write an hour from 0 to 23."
    case _ where minute > 59: advice = "Write minutes from 00 to 59."
    case _ where second > 59: advice = "Write seconds from 00 to 59."
    default: return
    }
    throw Failure.usage("\"\(text)\" is not a time of day. \(advice)")
  }
}
