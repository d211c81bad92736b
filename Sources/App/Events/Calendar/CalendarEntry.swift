import Foundation
import HTTPServer
import Postgres

/// One event as a VEVENT (RFC 5545). Calendars that read it again update their copy: the UID stays, and SEQUENCE counts
/// the edits.
///
/// - STATUS is the event's own, whatever the reader has answered. TRANSP says whether it takes up the reader's time.
/// - Without an end, an event has an hour, as in calendar apps. RFC 5545 allows an event without DTEND, but several
///   calendars show it at a wrong time or not at all.
/// - The organizer is a name and an id, because an email address must not leak. There are no attendees for the same
///   reason.
struct CalendarEntry {
  let event: Event
  /// DTSTAMP. Of two copies with the same SEQUENCE, calendars keep the one with the later DTSTAMP.
  let stamp: Timestamp
  /// Nil: the times are in UTC.
  let clock: WallClock?
  /// Whether to name the creator. RFC 5546 requires an organizer.
  var showsOrganizer = true
  /// Whether to show the note and the web address.
  var showsNote = true
  /// Whether the calendar reminds the reader when Muster does.
  var hasAlarm = false

  func write(to lines: inout ContentLines) {
    let plan = event.plan
    lines.add("BEGIN:VEVENT")
    lines.add("UID:\(event.id)")
    lines.add("DTSTAMP:\(stamp.iCalendarText)")
    lines.add("CREATED:\(event.createdAt.iCalendarText)")
    lines.add("LAST-MODIFIED:\(event.updatedAt.iCalendarText)")
    lines.add("SEQUENCE:\(event.version - 1)")
    lines.add("STATUS:\(event.status == .cancelled ? "CANCELLED" : "CONFIRMED")")
    lines.add("TRANSP:\(event.takesUpTime ? "OPAQUE" : "TRANSPARENT")")
    lines.add("DTSTART" + value(plan.startTime))
    lines.add("DTEND" + value(plan.calendarEnd))
    lines.add(text: plan.title, as: "SUMMARY")
    if showsNote, let note = plan.note { lines.add(text: note, as: "DESCRIPTION") }
    if showsNote, let url = plan.url { lines.add("URL:\(url)") }
    if let location = plan.location {
      lines.add(text: location.name, as: "LOCATION")
      if let latitude = location.latitude, let longitude = location.longitude {
        lines.add("GEO:" + String(format: "%.6f;%.6f", latitude, longitude))
      }
    }
    if showsOrganizer { lines.add(organizer) }
    if hasAlarm {
      lines.add("BEGIN:VALARM")
      lines.add("ACTION:DISPLAY")
      lines.add("TRIGGER:-PT\(Event.reminderLead / 60)M")
      lines.add(text: plan.title, as: "DESCRIPTION")
      lines.add("END:VALARM")
    }
    lines.add("END:VEVENT")
  }

  /// The creator, or the nil UUID if the account is deleted.
  private var organizer: String {
    guard let creator = event.creator else { return "ORGANIZER:urn:uuid:00000000-0000-0000-0000-000000000000" }
    return "ORGANIZER;CN=\"\(ContentLines.parameter(creator.displayName))\":urn:uuid:\(creator.id)"
  }

  /// A time with its parameters and the colon before it.
  private func value(_ time: Timestamp) -> String {
    guard let clock else { return ":\(time.iCalendarText)" }
    return ";TZID=\(clock.zone.name):\(clock.reading(at: time))"
  }
}

extension Event.Plan {
  /// The length of an event without an end, in seconds.
  private static let assumedLength = 3600

  /// DTEND.
  var calendarEnd: Timestamp {
    endTime
      ?? min(startTime.adding(seconds: Self.assumedLength), Timestamp(microseconds: Timestamp.years1To9999.upperBound))
  }
}

extension Event {
  /// Whether the reader is a host, or a guest who is going. These users also get the reminder.
  var takesUpTime: Bool { myRole != .guest || myStatus == "going" }
}

/// An event for calendar apps: an iCalendar object (RFC 5545) with one VEVENT. The method is PUBLISH (RFC 5546) and not
/// REQUEST, since guests answer in Muster.
private struct EventCalendar {
  let event: Event
  let now: Timestamp
  let zones: ZoneDatabase

  var bytes: [UInt8] {
    let clock = WallClock(of: event.plan, in: zones)
    var lines = ContentLines()
    lines.addCalendar {
      clock?.describe(in: &$0)
      CalendarEntry(event: event, stamp: now, clock: clock).write(to: &$0)
    }
    return lines.bytes
  }
}

extension ContentLines {
  /// Adds an iCalendar object with these components.
  mutating func addCalendar(_ components: (inout ContentLines) -> Void) {
    add("BEGIN:VCALENDAR")
    add("VERSION:2.0")
    add("PRODID:-//Muster//Muster//EN")
    add("METHOD:PUBLISH")
    components(&self)
    add("END:VCALENDAR")
  }
}

extension Response {
  static func calendar(_ event: Event, zones: ZoneDatabase) -> Response {
    Response(
      status: .ok,
      headers: [
        .contentType: "text/calendar; charset=utf-8",
        .contentDisposition: "attachment; filename=\"event-\(event.id).ics\"",
        .cacheControl: "no-store",
      ],
      body: ResponseBody(ByteBuffer(bytes: EventCalendar(event: event, now: .now(), zones: zones).bytes)))
  }
}

/// The lines of an iCalendar object, folded as RFC 5545 requires.
struct ContentLines {
  /// The maximum length of a line in octets, without its CRLF.
  private static let width = 75

  private(set) var bytes: [UInt8] = []

  /// - Parameter line: a line without line breaks.
  mutating func add(_ line: String) {
    var rest = Array(line.utf8)[...]
    var room = Self.width
    while rest.count > room {
      var end = rest.startIndex + room
      // Do not split a character.
      while rest[end] & 0b1100_0000 == 0b1000_0000 { end -= 1 }
      bytes += rest[..<end]
      bytes += "\r\n ".utf8
      rest = rest[end...]
      // The leading space of a continuation line counts.
      room = Self.width - 1
    }
    bytes += rest
    bytes += "\r\n".utf8
  }

  /// Adds a property of type TEXT, unless the text is empty. Every character that some reader takes for a line break is
  /// written as `\n`, so that no text can inject a property. Other control characters are removed.
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

  /// The text for a quoted parameter. No escape sequence works in all readers, so unsafe characters are replaced.
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
