import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Postgres

/// An event for calendar apps: an iCalendar object (RFC 5545) with one VEVENT. The method is PUBLISH (RFC 5546) and not
/// REQUEST, since guests answer in Muster. A calendar that imports it again updates its copy: the UID stays, and
/// SEQUENCE counts the edits.
///
/// - STATUS is the event's own, whatever the reader has answered. TRANSP says whether it takes up the reader's time.
/// - Without an end there is no DTEND, which RFC 5545 allows. An invented end would block hours.
/// - The organizer is a name and an id. RFC 5546 requires an organizer, but an email address must not leak.
struct EventCalendar {
  let event: Event
  /// The DTSTAMP of this object. Of two copies with the same SEQUENCE, calendars keep the one with the later DTSTAMP.
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

  /// The creator, or the nil UUID if the account is deleted.
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
