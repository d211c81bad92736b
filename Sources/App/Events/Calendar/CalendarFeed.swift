import Foundation
import Postgres

/// The events of a user for a calendar that reads them again and again.
///
/// The feed shows live events, and those that are archived, began in the last year, and ended in the last 90 days.
/// Declined events are absent.
/// An archived event has no organizer: its creator's name changes without a stamp.
struct CalendarFeed: Sendable {
  static let pastDays = 90
  /// Live events come first, by their start, then archived ones, latest first.
  static let maximumEvents = 500
  /// Describing a time zone costs as much as several events. Events in further zones have their times in UTC.
  static let maximumZones = 24
  /// Later entries have no notes and web addresses, so that no feed costs much more than others.
  static let maximumBytesWithNotes = 256 << 10
  private static let day = 86_400
  /// The feed describes time zones from a year ago to five years ahead.
  private static let daysDescribed = (before: 366, after: 5 * 366)

  /// An event, and whether it is archived.
  private struct Item {
    let event: Event
    let isArchived: Bool
  }

  let tag: Tag
  private let items: [Item]
  private let hasAlarms: Bool
  private let zones: ZoneDatabase

  /// Everything that a feed is made from besides the program. It moves whenever the feed's bytes do.
  struct Tag: Equatable, Sendable {
    fileprivate let today: Int
    private let stamps: [Timestamp]
    private let zoneRules: String

    /// Archived events leave the feed, and time zones enter it, by the UTC date.
    static func today(at now: Timestamp) -> Int { Int(now.microseconds) / (CalendarFeed.day * 1_000_000) }

    /// - Parameter row: a row with ``columns``.
    fileprivate init(_ row: Row, today: Int, zones: ZoneDatabase) throws {
      (self.today, zoneRules) = (today, zones.version)
      stamps = [try row["events_stamp"], try row["blocks_stamp"], try row["preferences_stamp"]]
    }

    /// Of `user_stamps AS s`.
    fileprivate static let columns: SQL = """
      s.events AS events_stamp, s.blocks AS blocks_stamp, s.notification_preferences AS preferences_stamp
      """

    var eTag: String {
      let parts = [Release.version, zoneRules, "\(today)"] + stamps.map { "\($0.microseconds)" }
      return "\"\(parts.joined(separator: "-"))\""
    }
  }

  // MARK: Reading

  /// The user behind a link, and the tag of their feed as it is now. One row, whatever the number of events.
  ///
  /// - Throws: ``AppError/calendarLinkNotFound``
  static func check(
    _ link: CalendarLink.ID, today: Int, zones: ZoneDatabase, in database: some Querying
  ) async throws -> (user: User.ID, tag: Tag) {
    let row = try await database.first(
      """
      SELECT l.user_id, \(Tag.columns)
      FROM calendar_links AS l
      JOIN user_stamps AS s ON s.user_id = l.user_id
      WHERE l.id = \(link) AND \(CalendarLink.isCurrent)
      """)
    guard let row else { throw AppError.calendarLinkNotFound }
    return (try row["user_id"], try Tag(row, today: today, zones: zones))
  }

  /// Reads events and stamps in one statement, and so in one snapshot.
  ///
  /// - Parameter user: the user behind the link.
  /// - Throws: ``AppError/calendarLinkNotFound`` if the link was revoked meanwhile.
  static func read(
    _ link: CalendarLink.ID, of user: User.ID, today: Int, zones: ZoneDatabase, in database: some Querying
  ) async throws -> CalendarFeed {
    // An event is live for a day after its end.
    let midnight = Timestamp(microseconds: 0).adding(seconds: today * day)
    let oldest = midnight.adding(seconds: (1 - pastDays) * day)
    // The index has only the starts of archived events.
    let earliest = midnight.adding(seconds: -daysDescribed.before * day)
    let memberships: SQL = """
      (
        \(Event.memberships(of: user, where: Event.isLive))
        UNION ALL
        \(Event.memberships(of: user, where: "archived_start >= \(earliest)"))
      )
      """
    let rows = try await database.rows(
      """
      SELECT \(Tag.columns), item.*,
        EXISTS (
          SELECT FROM muted_notifications WHERE user_id = \(user) AND type = \(Notice.Kind.eventReminder.rawValue)
        ) AS is_muted
      FROM calendar_links AS l
      JOIN user_stamps AS s ON s.user_id = l.user_id
      LEFT JOIN LATERAL (
        SELECT \(Event.columns), e.start_time, e.archived_at IS NOT NULL AS is_archived
        FROM \(Event.shown(memberships, to: user))
        WHERE m.my_status <> 'declined' AND (e.archived_at IS NULL OR e.live_until >= \(oldest))
        ORDER BY e.archived_at IS NOT NULL, CASE WHEN e.archived_at IS NULL THEN e.start_time END, e.start_time DESC,
          e.id
        LIMIT \(maximumEvents)
      ) AS item ON true
      WHERE l.id = \(link) AND l.user_id = \(user) AND \(CalendarLink.isCurrent)
      ORDER BY item.start_time, item.id
      """)
    guard let first = rows.first else { throw AppError.calendarLinkNotFound }
    var items: [Item] = []
    for row in rows {
      // Without events, there is one row with nothing but stamps.
      guard try (row["id"] as UUID?) != nil else { break }
      items.append(Item(event: try Event(row: row), isArchived: try row["is_archived"]))
    }
    return CalendarFeed(
      tag: try Tag(first, today: today, zones: zones), items: items, hasAlarms: try !first["is_muted"], zones: zones)
  }

  /// A query of the guests and hosts whose feeds may show archived events of a user. The set is a few days larger,
  /// because the clocks of processes differ.
  static func readers(ofArchivedEventsOf creator: User.ID) -> SQL {
    """
    SELECT reader.user_id
    FROM events AS e
    CROSS JOIN LATERAL (
      SELECT user_id FROM invitations WHERE event_id = e.id
      UNION ALL
      SELECT user_id FROM event_hosts WHERE event_id = e.id
    ) AS reader
    WHERE e.creator_id = \(creator) AND e.archived_at IS NOT NULL
      AND e.live_until >= clock_timestamp() - make_interval(days => \(Int32(pastDays + 3)))
    """
  }

  // MARK: Writing

  var bytes: [UInt8] {
    let today = Timestamp(microseconds: 0).adding(seconds: tag.today * Self.day)
    var clocks: [String: WallClock] = [:]
    var unknown: Set<String> = []
    for name in items.map(\.event.plan.timeZone) where clocks.count < Self.maximumZones && clocks[name] == nil {
      guard unknown.insert(name).inserted, let zone = zones[name] else { continue }
      clocks[name] = WallClock(
        zone, from: today.adding(seconds: -Self.daysDescribed.before * Self.day),
        to: today.adding(seconds: Self.daysDescribed.after * Self.day))
    }
    let entries = items.map { item -> CalendarEntry in
      let plan = item.event.plan
      let clock = clocks[plan.timeZone].flatMap { $0.names(plan) ? $0 : nil }
      return CalendarEntry(
        event: item.event, stamp: item.event.updatedAt, clock: clock, showsOrganizer: !item.isArchived,
        hasAlarm: hasAlarms && !item.isArchived && item.event.status == .scheduled && item.event.takesUpTime)
    }
    let used = Set(entries.compactMap(\.clock?.zone.name)).sorted()
    var lines = ContentLines()
    lines.addCalendar {
      $0.add("NAME:Muster")
      $0.add("X-WR-CALNAME:Muster")
      $0.add("REFRESH-INTERVAL;VALUE=DURATION:PT1H")
      $0.add("X-PUBLISHED-TTL:PT1H")
      for zone in used { clocks[zone]?.describe(in: &$0) }
      // RFC 5545 requires at least one component.
      if entries.isEmpty { WallClock.describeUTC(in: &$0) }
      for var entry in entries {
        entry.showsNote = $0.bytes.count < Self.maximumBytesWithNotes
        entry.write(to: &$0)
      }
    }
    return lines.bytes
  }
}
