import Postgres

/// When an event takes place, in words and in the event's time zone.
struct EventTime {
  private static let weekdays = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]

  /// For example `Friday, May 1, 2026`.
  let day: String
  /// For example `Friday, May 1, 2026, 6:00 PM to 8:00 PM`.
  let span: String
  /// For example `Time zone: Europe/Berlin (UTC+02:00)`.
  let zone: String

  init(_ plan: Event.Plan, in zone: Zone) {
    let start = Self.reading(plan.startTime, in: zone)
    var span = "\(start.day), \(start.clock)"
    if let end = plan.endTime.map({ Self.reading($0, in: zone) }) {
      span += " to " + (end.day == start.day ? "" : "\(end.day), ") + end.clock
    }
    let offset = Self.offset(of: zone, at: plan.startTime)
    (day, self.span, self.zone) = (start.day, span, "Time zone: \(plan.timeZone) (\(offset))")
  }

  /// Any time, for example `Friday, May 1, 2026, 6:00 PM (UTC+02:00)`.
  static func words(_ time: Timestamp, in zone: Zone) -> String {
    let (day, clock) = reading(time, in: zone)
    return "\(day), \(clock) (\(offset(of: zone, at: time)))"
  }

  private static func reading(_ time: Timestamp, in zone: Zone) -> (day: String, clock: String) {
    let reading = zone.reading(at: time)
    let (year, month, day) = reading.day.calendar
    // January 1, 1970 was a Thursday.
    let weekday = weekdays[(reading.day.days % 7 + 7) % 7]
    let (hour, minute) = (reading.secondOfDay / 3600, reading.secondOfDay / 60 % 60)
    let minutes = minute < 10 ? "0\(minute)" : "\(minute)"
    return (
      "\(weekday), \(months[month - 1]) \(day), \(year)",
      "\(hour % 12 == 0 ? 12 : hour % 12):\(minutes) \(hour < 12 ? "AM" : "PM")"
    )
  }

  private static func offset(of zone: Zone, at time: Timestamp) -> String {
    let seconds = zone.offset(at: time)
    let (hours, minutes) = (abs(seconds) / 3600, abs(seconds) / 60 % 60)
    return "UTC\(seconds < 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
  }
}
