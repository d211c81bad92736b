import HTTPTypes
import Hummingbird
import NIOCore
import Postgres

/// An event for calendar apps: an iCalendar object (RFC 5545) with one VEVENT. The method is PUBLISH (RFC 5546) and not
/// REQUEST, since guests answer in Muster.
struct EventCalendar {
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
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: EventCalendar(event: event, now: .now(), zones: zones).bytes)))
  }
}
