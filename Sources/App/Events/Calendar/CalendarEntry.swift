import Foundation
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
