import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// A page costs a page: what a list reads does not grow with a user's past.
extension PlanTests {
  /// Events and notifications of a user that are over.
  private static let short = 10
  private static let long = 10_000

  /// A user with past events as a creator, as a co-host and as a guest, as many of each. Ten of each kind are of the last
  /// weeks, and all others are older than two years. Twenty of each kind are to come. The notifications are of the last
  /// 85 days, and all but five are read.
  private static func plantLife(of user: Phone, past: Int, beside friend: Phone, in app: TestApp) async throws {
    let (me, other) = (user.userID, friend.userID)
    try await app.database.batch(
      """
      CREATE TEMPORARY TABLE life ON COMMIT DROP AS
      SELECT uuid_v7() AS id, role, CASE
        WHEN place > 0 THEN now() + place * interval '8 hours'
        WHEN place > -11 THEN now() + place * interval '2 days' - interval '3 days'
        ELSE now() - interval '730 days' + place * interval '8 hours'
      END AS start_time
      FROM unnest(ARRAY['creator', 'host', 'guest']) AS role, generate_series(-\(past), 20) AS place
      WHERE place <> 0
      """,
      """
      INSERT INTO events (
        id, creator_id, title, start_time, time_zone, start_offset, zone_rules, live_until, archived_at, invited_count,
        created_at, updated_at
      )
      SELECT id, CASE role WHEN 'creator' THEN \(me) ELSE \(other) END, 'Picnic', start_time, 'UTC', 0, '2025b',
        start_time + interval '30 hours', CASE WHEN start_time < now() THEN now() END,
        CASE role WHEN 'guest' THEN 1 ELSE 0 END, now(), now()
      FROM life
      """,
      "INSERT INTO event_co_hosts (event_id, user_id, added_at) SELECT id, \(me), now() FROM life WHERE role = 'host'",
      "INSERT INTO invitations (event_id, user_id) SELECT id, \(me) FROM life WHERE role = 'guest'",
      """
      INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, person_id, payload, created_at, read_at)
      SELECT \(me), now() - place * interval '85 days' / \(past)::float8, uuid_v7(), 'event-cancelled', uuid_v7(), \(other),
        '{"type": "event-cancelled", "title": "Picnic"}', now(), CASE WHEN place > 5 THEN now() END
      FROM generate_series(1, \(past)) AS place
      """)
  }

  /// The calls that read a list, or a thing by its id. Pages are one item shorter than the short past, because a page
  /// reads one item more.
  private static func calls(of phone: Phone) async throws -> [String] {
    let archive = try await phone.get("events?when=past&limit=9")
    let ids = archive["items"].array.compactMap { $0["id"].string }
    let old = try #require(archive["items"].array.first { $0["myRole"].string == "guest" }?["id"].string)
    let cursor = try #require(archive["nextCursor"].string)
    let events = try await phone.get("events")["items"].array
    let live = try #require(events.first { $0["myRole"].string == "creator" }?["id"].string)
    return [
      "events?limit=9", "events?limit=9&include=participants", "events?limit=9&include=digests",
      "events?when=past&limit=9", "events?when=past&limit=9&include=participants",
      "events?when=past&limit=9&cursor=\(cursor)", "events?ids=\(ids.joined(separator: ","))",
      "events/\(old)", "events/\(live)", "events/\(live)?include=guests", "events/\(live)/links",
      "events/\(live)/invitations?limit=9", "invitations?limit=9", "invitations?limit=9&include=participants",
      "invitations?status=invited&limit=9", "notifications?limit=9", "notifications?unread=true&limit=5",
      "users?query=picnic", "users/recommended",
    ]
  }

  /// The cost of requests, without that of statements that the service sends meanwhile.
  private static func cost(_ log: PlanLog, of requests: () async throws -> Void) async throws -> PlanLog.Cost {
    PlanLog.Cost(of: try await plans(log, of: requests))
  }

  private static func plans(_ log: PlanLog, of requests: () async throws -> Void) async throws -> [String] {
    try await log.plans(during: requests).filter { $0.contains("/* GET ") }
  }

  @Test func `what a list reads does not grow with past events and notifications`() async throws {
    let log = try await PlanLog()
    try await TestApp.run(["MUSTER_RATE_LIMITS": "off"], pastPooler: true, prepare: { try await PlanLog.begin(in: $0) })
    {
      app in
      let (young, old) = try await app.friends("young", "old")
      let friend = try await app.signUp("ana")
      for phone in [young, old] { try await app.befriend(phone, friend) }
      try await app.takeNotifications()
      for (phone, past) in [(young, Self.short), (old, Self.long)] {
        try await Self.plantLife(of: phone, past: past, beside: friend, in: app)
      }
      // Enough other users that the planner reads none by a scan of their tables.
      _ = try await app.crowd(2000, around: friend)
      let feeds = [try await young.makeCalendarLink(), try await old.makeCalendarLink()]
      // Otherwise index-only scans look into the table for new rows.
      try await ScriptConnection.run(app.databaseURL, timeout: .seconds(60)) { try $0.script("VACUUM ANALYZE") }
      let calls = zip(try await Self.calls(of: young), try await Self.calls(of: old))
      // At first PostgreSQL plans for the values, and later for any.
      for time in 1...8 {
        func compare(_ name: String, _ read: (Int) async throws -> Void) async throws {
          // At most a fifth more. A plan has a row more for each item where the planner takes another index, and that is
          // no growth.
          func limit(_ number: Int) -> Int { Int((1.2 * Double(number)).rounded(.up)) }
          // A connection's first plan of a kind also reads the catalog, so what seems to grow is read again.
          for attempt in 1...3 {
            let plans = [
              try await Self.plans(log) { try await read(0) }, try await Self.plans(log) { try await read(1) },
            ]
            let costs = plans.map(PlanLog.Cost.init(of:))
            #expect(costs[0].buffers > 0, "\(name)")
            let isFlat = costs[1].rows <= limit(costs[0].rows) + 10 && costs[1].buffers <= limit(costs[0].buffers)
            if isFlat { return }
            #expect(
              attempt < 3,
              "\(name), time \(time): \(costs[0]), with a long past \(costs[1]): \(plans)")
          }
        }
        for (youngs, olds) in calls {
          try await compare(olds) { _ = try await $0 == 0 ? young.get(youngs) : old.get(olds) }
        }
        try await compare("calendar") { _ = try await app.calendarFeed(feeds[$0]) }
      }
      try await checkInbox(of: old, log, in: app)
      try await checkExport(of: old, log)
      try await checkUnread(of: old, log, in: app)
    }
  }

  /// A page of the inbox reads its items, one of each partition that has any, and the unread ones, which it counts.
  private func checkInbox(of phone: Phone, _ log: PlanLog, in app: TestApp) async throws {
    let partitions: Int = try #require(try await app.value("SELECT count(*) FROM notification_partitions"))
    for limit in [9, 50] {
      let cost = try await Self.cost(log) { _ = try await phone.get("notifications?limit=\(limit)") }
      // In addition to the items: the stamps, the floor, and for each partition and index at most three pages of the index.
      #expect(cost.rows <= limit + 1 + partitions + 5 + 3, "\(limit): \(cost)")
      #expect(cost.buffers <= 2 * (limit + 1) + 7 * partitions + 30, "\(limit): \(cost)")
    }
  }

  /// An export reads each row once, and one row with its event's title.
  private func checkExport(of phone: Phone, _ log: PlanLog) async throws {
    var items = 0
    let cost = try await Self.cost(log) {
      let export = try await phone.get("users/me/export")
      items = Export.Section.all.map { export[$0.name].array.count }.reduce(0, +)
    }
    #expect(items > 4 * Self.long)
    #expect(cost.rows < 3 * items, "\(items) items: \(cost)")
  }

  /// The number of unread items is read up to its maximum.
  private func checkUnread(of phone: Phone, _ log: PlanLog, in app: TestApp) async throws {
    try await app.database.execute("UPDATE notifications SET read_at = NULL WHERE recipient_id = \(phone.userID)")
    var list = JSON.null
    let cost = try await Self.cost(log) { list = try await phone.get("notifications?limit=9") }
    #expect(list["unread"].int == InboxItem.maximumUnread)
    #expect(cost.rows < InboxItem.maximumUnread + 100, "\(cost)")
    #expect(try await phone.markRead(#"{"all": true}"#).json["unread"].int == 0)
    try await app.takeNotifications()
  }
}
