import Foundation
import Postgres

/// When an event takes place, in words and in the event's time zone.
struct EventTime {
  private static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
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

  init(_ plan: Event.Plan) {
    let timeZone = TimeZone(identifier: plan.timeZone) ?? .gmt
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = timeZone
    func words(_ time: Timestamp) -> (day: String, clock: String) {
      let date = Date(timeIntervalSince1970: Double(time.microseconds / 1_000_000))
      let parts = calendar.dateComponents([.weekday, .year, .month, .day, .hour, .minute], from: date)
      let (hour, minute) = (parts.hour ?? 0, parts.minute ?? 0)
      let weekday = Self.weekdays[(parts.weekday ?? 1) - 1]
      let day = "\(weekday), \(Self.months[(parts.month ?? 1) - 1]) \(parts.day ?? 1), \(parts.year ?? 1970)"
      let minutes = minute < 10 ? "0\(minute)" : "\(minute)"
      return (day, "\(hour % 12 == 0 ? 12 : hour % 12):\(minutes) \(hour < 12 ? "AM" : "PM")")
    }
    let start = words(plan.startTime)
    var span = "\(start.day), \(start.clock)"
    if let end = plan.endTime.map(words) { span += " to " + (end.day == start.day ? "" : "\(end.day), ") + end.clock }
    let seconds = timeZone.secondsFromGMT(
      for: Date(timeIntervalSince1970: Double(plan.startTime.microseconds / 1_000_000)))
    let (hours, minutes) = (abs(seconds) / 3600, abs(seconds) / 60 % 60)
    let offset = "UTC\(seconds < 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    (day, self.span, zone) = (start.day, span, "Time zone: \(plan.timeZone) (\(offset))")
  }
}
