import Foundation

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

  func start(_ text: String) throws -> Date {
    try TimePhrase(now: now, zone: zone).date(from: text)
  }

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
    let phrase = TimePhrase(now: TimePhrase.isClockAlone(until) ? start : now, zone: zone)
    let end = try phrase.date(from: until)
    guard end > start else { throw Failure.usage("The end \"\(until)\" must be after the start.") }
    return end
  }
}
