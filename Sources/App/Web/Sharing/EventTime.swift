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
    func words(_ time: Timestamp) -> (day: String, clock: String) {
      let reading = zone.reading(at: time)
      let (year, month, day) = reading.day.calendar
      // January 1, 1970 was a Thursday.
      let weekday = Self.weekdays[(reading.day.days % 7 + 7) % 7]
      let (hour, minute) = (reading.time.hour, reading.time.minute)
      let minutes = minute < 10 ? "0\(minute)" : "\(minute)"
      return (
        "\(weekday), \(Self.months[month - 1]) \(day), \(year)",
        "\(hour % 12 == 0 ? 12 : hour % 12):\(minutes) \(hour < 12 ? "AM" : "PM")"
      )
    }
    let start = words(plan.startTime)
    var span = "\(start.day), \(start.clock)"
    if let end = plan.endTime.map(words) { span += " to " + (end.day == start.day ? "" : "\(end.day), ") + end.clock }
    let seconds = zone.offset(at: plan.startTime)
    let (hours, minutes) = (abs(seconds) / 3600, abs(seconds) / 60 % 60)
    let offset = "UTC\(seconds < 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    (day, self.span, self.zone) = (start.day, span, "Time zone: \(plan.timeZone) (\(offset))")
  }
}
