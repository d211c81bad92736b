import Foundation
import MusterKit

/// When an event is, by the clocks where it is: a dinner in Lisbon is at eight in Lisbon, wherever its guests are.
struct EventTime: Hashable {
  let event: Event
  var viewer = TimeZone.current
  var locale = Locale.current

  /// Such as `Sat, May 2 at 7:00 PM (Lisbon time)`.
  var text: String { text(of: event.startTime, in: event.timeZone) + (isElsewhere ? " (\(place) time)" : "") }

  var endText: String? { event.endTime.map { text(of: $0, in: event.timeZone) } }
  /// The start by the user's own clock, if that differs.
  var viewerText: String? { isElsewhere ? text(of: event.startTime, in: viewer) : nil }

  private var isElsewhere: Bool {
    event.timeZone.secondsFromGMT(for: event.startTime) != viewer.secondsFromGMT(for: event.startTime)
  }

  /// `America/New_York` is New York. If the phone does not know the zone, the times are those of Greenwich.
  private var place: String {
    guard event.timeZone.identifier == event.timeZoneName else { return "GMT" }
    return String(event.timeZoneName.split(separator: "/").last ?? "GMT").replacing("_", with: " ")
  }

  private func text(of date: Date, in zone: TimeZone) -> String {
    date.formatted(
      Date.FormatStyle(locale: locale, timeZone: zone).weekday().day().month().hour().minute())
  }
}
