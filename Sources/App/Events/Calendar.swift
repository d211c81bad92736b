import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Postgres

/// An event as calendars take it in: an iCalendar object (RFC 5545) with one VEVENT, published (RFC 5546) and not sent
/// as a request, since guests answer here. Taken in again it changes the copy that is there: its UID stays, and
/// SEQUENCE counts the edits.
///
/// - STATUS is the event's own, whatever the reader has answered; TRANSP tells whether it takes up the reader's time.
/// - Without an end it has none here either, which RFC 5545 allows: an end that nobody named would block hours.
/// - The organizer is known by name and id. An address must not leak, and RFC 5546 wants an organizer.
struct EventCalendar {
  let event: Event
  /// When this object is made: of two copies with the same SEQUENCE, calendars keep the one made later.
  let now: Timestamp

  var bytes: [UInt8] {
    let plan = event.plan
    let clock = WallClock(of: plan)
    var lines = ContentLines()
    lines.add("BEGIN:VCALENDAR")
    lines.add("VERSION:2.0")
    lines.add("PRODID:-//Muster//Muster//EN")
    lines.add("METHOD:PUBLISH")
    clock?.describe(in: &lines)
    lines.add("BEGIN:VEVENT")
    lines.add("UID:\(event.id)")
    lines.add("DTSTAMP:\(now.iCalendarText)")
    lines.add("CREATED:\(event.createdAt.iCalendarText)")
    lines.add("LAST-MODIFIED:\(event.updatedAt.iCalendarText)")
    lines.add("SEQUENCE:\(event.version - 1)")
    lines.add("STATUS:\(event.status == .cancelled ? "CANCELLED" : "CONFIRMED")")
    lines.add("TRANSP:\(["creator", "going"].contains(event.myStatus) ? "OPAQUE" : "TRANSPARENT")")
    lines.add("DTSTART" + Self.value(plan.startTime, on: clock))
    if let end = plan.endTime { lines.add("DTEND" + Self.value(end, on: clock)) }
    lines.add(text: plan.title, as: "SUMMARY")
    if let note = plan.note { lines.add(text: note, as: "DESCRIPTION") }
    if let location = plan.location {
      lines.add(text: location.name, as: "LOCATION")
      if let latitude = location.latitude, let longitude = location.longitude {
        lines.add("GEO:" + String(format: "%.6f;%.6f", latitude, longitude))
      }
    }
    lines.add(organizer)
    lines.add("END:VEVENT")
    lines.add("END:VCALENDAR")
    return lines.bytes
  }

  /// Nobody, as the nil UUID, once the account is gone.
  private var organizer: String {
    guard let creator = event.creator else { return "ORGANIZER:urn:uuid:00000000-0000-0000-0000-000000000000" }
    return "ORGANIZER;CN=\"\(ContentLines.parameter(creator.displayName))\":urn:uuid:\(creator.id)"
  }

  /// A time with its parameters and the colon before it.
  private static func value(_ time: Timestamp, on clock: WallClock?) -> String {
    guard let clock else { return ":\(time.iCalendarText)" }
    return ";TZID=\(clock.zone):\(clock.reading(at: time))"
  }
}

extension Response {
  static func calendar(_ event: Event) -> Response {
    Response(
      status: .ok,
      headers: [
        .contentType: "text/calendar; charset=utf-8",
        .contentDisposition: "attachment; filename=\"event-\(event.id).ics\"",
        .cacheControl: "no-store",
      ],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: EventCalendar(event: event, now: .now()).bytes)))
  }
}

/// A zone's clock in the years around an event: times are given as it shows them, so that calendars put them where their
/// owner expects them when the zone is looked at.
private struct WallClock {
  /// From when on the clock keeps a distance from UTC, in seconds, and the one before.
  private struct Observance {
    let onset: Timestamp
    let before: Int
    let offset: Int
    let isDaylight: Bool
  }

  private static let year = 366 * 86_400
  /// 2100-01-01: Foundation looks for a zone's changes only until a year later.
  private static let horizon = Timestamp(microseconds: 4_102_444_800_000_000)

  /// An IANA name: no character in it needs a quote.
  let zone: String
  /// Never empty; the first begins a year before the event.
  private let observances: [Observance]

  /// Nil where only UTC will do:
  ///
  /// - In UTC itself, and in zones that are a distance from it and no place.
  /// - For an event of more than a year, whose zone would take any number of lines, or too far away.
  /// - Where the clock shows a time for the second time, because it was set back: iCalendar cannot name it.
  init?(of plan: Event.Plan) {
    let (start, end) = (plan.startTime, plan.endTime ?? plan.startTime)
    guard !["UTC", "GMT"].contains(plan.timeZone), !plan.timeZone.hasPrefix("Etc/"),
      end <= start.adding(seconds: Self.year), end < Self.horizon,
      let timeZone = TimeZone(identifier: plan.timeZone)
    else { return nil }
    zone = plan.timeZone
    observances = Self.observances(
      of: timeZone, from: start.adding(seconds: -Self.year), to: end.adding(seconds: Self.year))
    if isRepeated(at: start) || isRepeated(at: end) { return nil }
  }

  /// The one that holds at first, and those that follow.
  private static func observances(of zone: TimeZone, from first: Timestamp, to last: Timestamp) -> [Observance] {
    var date = first.date
    var offset = zone.secondsFromGMT(for: date)
    var found = [
      Observance(
        onset: first, before: offset, offset: offset, isDaylight: zone.isDaylightSavingTime(for: date))
    ]
    while let next = zone.nextDaylightSavingTimeTransition(after: date), next > date, next <= last.date {
      let before = offset
      date = next
      offset = zone.secondsFromGMT(for: date)
      // Else only its name changes.
      if offset != before {
        found.append(
          Observance(
            onset: Timestamp(date), before: before, offset: offset, isDaylight: zone.isDaylightSavingTime(for: date)))
      }
    }
    return found
  }

  private func observance(at time: Timestamp) -> Observance {
    observances.last { $0.onset <= time } ?? observances[0]
  }

  private func isRepeated(at time: Timestamp) -> Bool {
    let current = observance(at: time)
    return time < current.onset.adding(seconds: current.before - current.offset)
  }

  /// What the clock shows: the wall's date and time.
  func reading(at time: Timestamp) -> String {
    Self.reading(time, observance(at: time).offset)
  }

  private static func reading(_ time: Timestamp, _ offset: Int) -> String {
    // As if it were UTC, without the letter that says so.
    String(time.adding(seconds: offset).iCalendarText.dropLast())
  }

  func describe(in lines: inout ContentLines) {
    lines.add("BEGIN:VTIMEZONE")
    lines.add("TZID:\(zone)")
    for observance in observances {
      let kind = observance.isDaylight ? "DAYLIGHT" : "STANDARD"
      lines.add("BEGIN:\(kind)")
      // The time that the clock showed when it was changed.
      lines.add("DTSTART:\(Self.reading(observance.onset, observance.before))")
      lines.add("TZOFFSETFROM:\(Self.text(ofOffset: observance.before))")
      lines.add("TZOFFSETTO:\(Self.text(ofOffset: observance.offset))")
      lines.add("END:\(kind)")
    }
    lines.add("END:VTIMEZONE")
  }

  /// `+0200`; with seconds only where there are any.
  private static func text(ofOffset offset: Int) -> String {
    let size = abs(offset)
    let text = (offset < 0 ? "-" : "+") + String(format: "%02d%02d", size / 3600, size / 60 % 60)
    return size % 60 == 0 ? text : text + String(format: "%02d", size % 60)
  }
}

/// The lines of an iCalendar object, folded as they must be.
private struct ContentLines {
  /// Octets of a line, its end not counted.
  private static let width = 75

  private(set) var bytes: [UInt8] = []

  /// - Parameter line: without a line's end in it.
  mutating func add(_ line: String) {
    var rest = Array(line.utf8)[...]
    var room = Self.width
    while rest.count > room {
      var end = rest.startIndex + room
      // Not within the octets of one character.
      while rest[end] & 0b1100_0000 == 0b1000_0000 { end -= 1 }
      bytes += rest[..<end]
      bytes += "\r\n ".utf8
      rest = rest[end...]
      // The space counts.
      room = Self.width - 1
    }
    bytes += rest
    bytes += "\r\n".utf8
  }

  /// A property of type TEXT; none for an empty one. Whatever ends a line, in the eyes of any reader, is written as
  /// `\n`, so that no text can pass for a property; other control characters have no place in it.
  mutating func add(text: String, as name: String) {
    guard !text.isEmpty else { return }
    var escaped = "\(name):".unicodeScalars
    for scalar in text.replacing("\r\n", with: "\n").unicodeScalars {
      switch scalar {
      case "\\", ";", ",":
        escaped.append("\\")
        escaped.append(scalar)
      case "\t": escaped.append(scalar)
      case _ where Self.endsLine(scalar): escaped.append(contentsOf: "\\n".unicodeScalars)
      default: if scalar.properties.generalCategory != .control { escaped.append(scalar) }
      }
    }
    add(String(escaped))
  }

  /// Text for a quoted parameter. There is no escaping that all readers know: what cannot stand in it is replaced.
  static func parameter(_ text: String) -> String {
    var plain = "".unicodeScalars
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": plain.append("'")
      case _ where endsLine(scalar) || scalar.properties.generalCategory == .control: plain.append(" ")
      default: plain.append(scalar)
      }
    }
    return String(plain)
  }

  private static func endsLine(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\n", "\r", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}": true
    default: false
    }
  }
}

extension Timestamp {
  /// In UTC, as iCalendar writes it: `20260501T180000Z`.
  fileprivate var iCalendarText: String { rfc3339().filter { $0 != "-" && $0 != ":" } }
}
