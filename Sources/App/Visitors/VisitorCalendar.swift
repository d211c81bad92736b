import Foundation
import Postgres

/// The event of a visitor, for calendars that read it again and again.
struct VisitorCalendar: Sendable {
  private let event: Event
  private let isOpen: Bool
  private let zones: ZoneDatabase

  /// Nil if there is no such visitor.
  static func find(
    _ token: (id: Guest.ID, kid: String), zones: ZoneDatabase, in database: some Querying
  ) async throws -> VisitorCalendar? {
    try await database.first(
      """
      SELECT \(Event.columns), \(Event.Phase.isOpen("e")) AS is_open
      FROM (
        SELECT event_id, status AS my_status, plus_ones AS my_plus_ones
        FROM visitors WHERE id = \(token.id) AND kid = \(token.kid)
      ) AS m
      JOIN events AS e ON e.id = m.event_id
      LEFT JOIN users AS c ON c.id = e.creator_id
      CROSS JOIN (SELECT ARRAY[]::record[] AS co_hosts) AS co
      """
    ).map { VisitorCalendar(event: try Event(row: $0), isOpen: try $0["is_open"], zones: zones) }
  }

  /// Moves whenever the bytes do: with each edit, with the visitor's answer, with the release, and with the time zone
  /// database.
  var eTag: String {
    let parts = [
      Release.version, "\(event.id)", "\(event.version)", event.status.rawValue, event.myStatus, "\(isOpen)",
      "\(event.updatedAt.microseconds)", zones.version,
    ]
    return "\"\(parts.joined(separator: "-"))\""
  }

  var bytes: [UInt8] {
    let clock = WallClock(of: event.plan, in: zones)
    var lines = ContentLines()
    lines.addCalendar {
      $0.add("NAME:Muster")
      $0.add("X-WR-CALNAME:Muster")
      $0.add("REFRESH-INTERVAL;VALUE=DURATION:PT1H")
      $0.add("X-PUBLISHED-TTL:PT1H")
      clock?.describe(in: &$0)
      // No organizer: the tag would not change with the creator's name.
      CalendarEntry(
        event: event, stamp: event.updatedAt, clock: clock, showsOrganizer: false,
        hasAlarm: isOpen && event.takesUpTime
      ).write(to: &$0)
    }
    return lines.bytes
  }
}
