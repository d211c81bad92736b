import Foundation
import Postgres
import Testing

@testable import App

@Suite struct CalendarFeedTests {
  @Test func `the feed has the same events as their files, and says that it is a calendar to refresh`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent("Picnic", inviting: [ben])["id"].string ?? ""
      let feed = try await app.calendarFeed(try await ana.makeCalendarLink())
      for line in [
        "METHOD:PUBLISH", "NAME:Muster", "X-WR-CALNAME:Muster", "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
      ] { #expect(feed.lines.contains(line), "\(line)") }
      #expect(feed.lines.first == "BEGIN:VCALENDAR" && feed.lines.last == "END:VCALENDAR")
      let file = try await ana.send("GET", "events/\(id)/calendar.ics").body
      let single = CalendarCopy(path: "", text: file, tag: "")
      let alarm = ["BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT60M", "DESCRIPTION:Picnic", "END:VALARM"]
      func plain(_ lines: [String]?) -> [String]? { lines?.filter { !$0.hasPrefix("DTSTAMP:") } }
      #expect(plain(feed.events[id]) == plain(single.events[id]).map { $0 + alarm })
      let updated = try await ana.get("events/\(id)")["updatedAt"].string?.filter { $0 != "-" && $0 != ":" } ?? ""
      #expect(feed.events[id]?.contains("DTSTAMP:\(updated)") == true)
      try await app.takeNotifications()
    }
  }

  @Test func `an empty feed has a component, as the standard requires`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let feed = try await app.calendarFeed(try await ana.makeCalendarLink())
      #expect(feed.events.isEmpty && feed.lines.contains("BEGIN:VTIMEZONE"))
    }
  }

  @Test func `answers decide which events take up time, which ring, and which are absent`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent("Picnic", inviting: [ben])["id"].string ?? ""
      let path = try await ben.makeCalendarLink()
      for (status, transparency, rings) in [
        (nil, "TRANSPARENT", false), ("maybe", "TRANSPARENT", false), ("going", "OPAQUE", true),
        ("declined", nil, false),
        ("going", "OPAQUE", true),
      ] as [(String?, String?, Bool)] {
        if let status { try await ben.answer(status, to: id) }
        let event = try await app.calendarFeed(path).events[id]
        #expect((event != nil) == (transparency != nil), "\(status ?? "")")
        if let transparency { #expect(event?.contains("TRANSP:\(transparency)") == true, "\(status ?? "")") }
        #expect((event?.contains("BEGIN:VALARM") == true) == rings, "\(status ?? "")")
      }
      #expect(try await ben.send("PUT", "notification-preferences", #"{"event-reminder": false}"#).status == 200)
      #expect(try await app.calendarFeed(path).events[id]?.contains("BEGIN:VALARM") == false)
      try await ana.edit(id, #"{"title": "Swim"}"#)
      #expect(try await app.calendarFeed(path).events[id]?.contains("SEQUENCE:1") == true)
      try await ana.cancelEvent(id)
      let cancelled = try await app.calendarFeed(path).events[id]
      #expect(cancelled?.contains("STATUS:CANCELLED") == true && cancelled?.contains("SEQUENCE:2") == true)
      try await ana.block(ben)
      let blocked = try await app.calendarFeed(path)
      #expect(blocked.events.isEmpty && !blocked.text.contains(ana.id))
      try await app.takeNotifications()
    }
  }

  @Test func `archived events stay for 90 days, without an organizer`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let now = Timestamp.now()
      var ids: [Int: String] = [:]
      for days in [2, 80, 89, 92, 400] {
        let start = now.adding(seconds: -days * 86_400)
        ids[days] =
          try await ana.createEvent(
            "\(days)", inviting: [ben], startTime: start.rfc3339(), endTime: start.adding(seconds: 3600).rfc3339())[
            "id"
          ]
          .string ?? ""
      }
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 20, in: $0) }
      let feed = try await app.calendarFeed(try await ben.makeCalendarLink())
      let shown = Set(feed.events.keys)
      #expect(shown == Set([2, 80, 89].compactMap { ids[$0] }))
      #expect(!feed.text.contains("ORGANIZER") && !feed.text.contains(ana.id))
      try await app.takeNotifications()
    }
  }

  @Test func `each zone is described once, and far events are in UTC`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let soon = Timestamp.now().adding(seconds: 30 * 86_400).rfc3339()
      func plan(_ zone: String, at start: String) async throws -> String {
        let response = try await ana.send(
          "POST", "events", #"{"title": "A", "startTime": "\#(start)", "timeZone": "\#(zone)"}"#)
        return try #require(response.json["id"].string, "\(response.body)")
      }
      for zone in ["Europe/Berlin", "Europe/Berlin", "Australia/Lord_Howe", "UTC"] {
        _ = try await plan(zone, at: soon)
      }
      let far = try await plan("America/New_York", at: "2090-05-01T18:00:00Z")
      let feed = try await app.calendarFeed(try await ana.makeCalendarLink())
      let zones = feed.lines.filter { $0.hasPrefix("TZID:") }
      #expect(zones == ["TZID:Australia/Lord_Howe", "TZID:Europe/Berlin"])
      #expect(feed.events[far]?.contains("DTSTART:20900501T180000Z") == true)
      #expect(feed.lines.count { $0.hasPrefix("DTSTART;TZID=Europe/Berlin:") } == 2)
    }
  }

  @Test func `a feed has at most 500 events, live ones first, soonest first`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.database.execute(
        """
        INSERT INTO events (id, creator_id, title, start_time, time_zone, live_until, archived_at, start_offset, zone_rules)
        SELECT uuid_v7(), \(ana.userID), CASE WHEN n <= 499 THEN 'live ' ELSE 'old ' END || n,
          CASE WHEN n <= 499 THEN now() + make_interval(days => n) ELSE now() - make_interval(hours => n - 400) END,
          'Europe/Berlin', now() + make_interval(days => n), CASE WHEN n > 499 THEN now() END, 3600,
          '2025b'
        FROM generate_series(1, 2000) AS n
        """)
      let feed = try await app.calendarFeed(try await ana.makeCalendarLink())
      let titles = feed.lines.filter { $0.hasPrefix("SUMMARY:") }.map { $0.dropFirst("SUMMARY:".count) }
      #expect(titles.count == CalendarFeed.maximumEvents)
      #expect(titles.first == "old 500" && titles.last == "live 499")
    }
  }
}
