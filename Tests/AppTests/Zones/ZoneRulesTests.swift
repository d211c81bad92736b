import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// A new version of the time zone database: local times stay, and instants move.
@Suite struct ZoneRulesTests {
  /// Vancouver with and without its changes, and a place whose rules stay.
  private struct Versions {
    let old: ZoneDatabase
    let new: ZoneDatabase

    init() throws {
      func database(_ version: String, _ rule: String) throws -> ZoneDatabase {
        let made = try MadeZones(
          version: version,
          ["Made/Vancouver": .init(rule: rule), "Made/Place": .init(rule: "CET-1CEST,M3.5.0,M10.5.0/3")])
        defer { made.remove() }
        return try made.database()
      }
      old = try database("2026a", "PST8PDT,M3.2.0,M11.1.0")
      new = try database("2026b", "<-07>7")
    }
  }

  private func withOldRules(
    _ body: @escaping @Sendable (TestApp, Versions) async throws -> Void
  ) async throws {
    let made = try MadeZones(
      version: "2026a",
      [
        "Made/Vancouver": .init(rule: "PST8PDT,M3.2.0,M11.1.0"),
        "Made/Place": .init(rule: "CET-1CEST,M3.5.0,M10.5.0/3"),
      ])
    defer { made.remove() }
    try await TestApp.run([Variable.table.zoneFolder.name: made.folder.path], isShared: false) { app in
      try await body(app, try Versions())
    }
  }

  private func plan(
    _ phone: Phone, _ times: String, inviting guests: [Phone] = [], in zone: String = "Made/Vancouver"
  ) async throws -> String {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    let response = try await phone.send(
      "POST", "events", #"{"title": "Dinner", "timeZone": "\#(zone)", "inviteeIds": [\#(ids)], \#(times)}"#)
    #expect(response.status == 201, "\(response.body)")
    return try #require(response.json["id"].string)
  }

  /// Does what a worker with this version does, until nothing is left.
  @discardableResult
  private func keep(_ zones: ZoneDatabase, in app: TestApp) async throws -> Int {
    var total = 0
    while true {
      let count = try await app.service.change { try await Event.keepLocalTimes(by: zones, atMost: 3, in: $0) }
      if count == 0 { return total }
      total += count
    }
  }

  private func times(_ phone: Phone, _ event: String) async throws -> [String?] {
    let event = try await phone.get("events/\(event)")
    return ["startTime", "endTime", "answerBy"].map { event[$0].string }
  }

  @Test func `seven in the evening stays seven in the evening, and all who come are notified without a push`()
    async throws
  {
    try await withOldRules { app, versions in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      for phone in [ana, ben] { try await phone.addDevice("device-\(phone.username)") }
      let event = try await plan(
        ana, #""startTime": "2030-01-15T19:00", "endTime": "2030-01-15T22:00", "answerBy": "2030-01-14T12:00""#,
        inviting: [ben, cleo])
      try await cleo.answer("declined", to: event)
      let others = [
        try await plan(ana, #""startTime": "2030-07-15T19:00""#),
        try await plan(ana, #""startTime": "2030-01-15T19:00""#, in: "Made/Place"),
      ]
      try await app.takeNotifications()
      #expect(
        try await times(ben, event) == ["2030-01-16T03:00:00Z", "2030-01-16T06:00:00Z", "2030-01-14T20:00:00Z"])
      let before = try await ben.get("events/\(event)")
      let untouched = try await ana.get("events/\(others[0])")

      let stale = try await app.stale(among: [ana, ben, cleo]) {
        let (older, newer) = (try await keep(versions.old, in: app), try await keep(versions.new, in: app))
        #expect(older == 0 && newer == 3)
      }
      #expect(stale["ben"] == [.events, .invitations, .notifications])
      #expect(stale["ana"] == [.events, .notifications] && stale["cleo"] == [.events, .invitations])
      #expect(
        try await times(ben, event) == ["2030-01-16T02:00:00Z", "2030-01-16T05:00:00Z", "2030-01-14T19:00:00Z"])
      let after = try await ben.get("events/\(event)")
      #expect(after["version"].int == (before["version"].int ?? 0) + 1)
      #expect(try await ana.get("events/\(others[0])") == untouched)
      let row = try #require(
        try await app.database.first(
          """
          SELECT remind_at = start_time - interval '1 hour' AS reminds,
            live_until = end_time + interval '24 hours' AS lives, start_offset, zone_rules
          FROM events WHERE id = \(Event.ID(event))
          """))
      #expect(try row["reminds"] && row["lives"])
      #expect(try row["start_offset"] == -25_200 && row["zone_rules"] == "2026b")

      // An item in the inbox of everyone who comes, and nothing on their devices.
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 0)
      for phone in [ana, ben] {
        let item = try await phone.get("notifications")["items"][0]
        #expect(item["type"].string == "event-updated" && item["cause"].string == "zone-rules")
        #expect(item["locKey"].string == "event-updated.zone-rules")
        #expect(item["message"].string == "The rules of its time zone have changed, and “Dinner” keeps its local time.")
        #expect(item["changes"].array.compactMap { $0["field"].string } == ["startTime", "endTime", "answerBy"])
        #expect(item["changes"][0]["old"] == before["startTime"] && item["changes"][0]["new"] == after["startTime"])
      }
      #expect(try await cleo.get("notifications")["items"].array.allSatisfy { $0["cause"].string == nil })
      // An edit by a host still reaches the devices.
      try await ana.edit(event, #"{"title": "Supper"}"#)
      try await app.fanOut()
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `an older version never moves an event back, no matter which host plans next`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let event = try await plan(ana, #""startTime": "2030-01-15T19:00""#)
      try await keep(versions.new, in: app)
      let moved = try await ana.get("events/\(event)")
      #expect(moved["startTime"].string == "2030-01-16T02:00:00Z")
      for _ in 0..<3 {
        #expect(try await keep(versions.old, in: app) == 0)
        #expect(try await keep(versions.new, in: app) == 0)
      }
      #expect(try await ana.get("events/\(event)") == moved)
      // The service still has the old version. Only the worker with the new one moves what it plans.
      let later = try await plan(ana, #""startTime": "2030-01-16T19:00""#)
      #expect(try await times(ana, later)[0] == "2030-01-17T03:00:00Z")
      #expect(try await keep(versions.old, in: app) == 0)
      #expect(try await keep(versions.new, in: app) == 1)
      #expect(try await times(ana, later)[0] == "2030-01-17T02:00:00Z")
      // So for an edit of its time. An edit of its title leaves the time alone.
      try await ana.edit(event, #"{"title": "Supper"}"#)
      #expect(try await keep(versions.new, in: app) == 0)
      try await ana.edit(event, #"{"startTime": "2030-01-15T20:00"}"#)
      #expect(try await times(ana, event)[0] == "2030-01-16T04:00:00Z")
      #expect(try await keep(versions.old, in: app) == 0)
      #expect(try await keep(versions.new, in: app) == 1)
      #expect(try await times(ana, event)[0] == "2030-01-16T03:00:00Z")
      try await app.takeNotifications()
    }
  }

  @Test func `an edit by older rules is looked at again, even if its offset stays`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let event = try await plan(ana, #""startTime": "2030-01-15T19:00""#)
      #expect(try await keep(versions.new, in: app) == 1)
      // By the old rules, July has the offset that the event has by now.
      try await ana.edit(event, #"{"startTime": "2030-07-15T19:00"}"#)
      try await ana.edit(event, #"{"startTime": "2030-07-16T19:00"}"#)
      let rules: String? = try await app.value("SELECT zone_rules FROM events")
      #expect(rules == "2026a")
      #expect(try await times(ana, event)[0] == "2030-07-17T02:00:00Z")
      try await app.takeNotifications()
    }
  }

  @Test func `a host that does not know an event's zone stores no made-up offset`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let event = try await plan(ana, #""startTime": "2030-01-15T19:00""#)
      // As a host with another version has planned it.
      try await app.database.execute("UPDATE events SET time_zone = 'Made/Unknown'")
      let start = #"{"startTime": "2030-01-20T03:00:00Z"}"#
      #expect(try await ana.send("PATCH", "events/\(event)", start).status == 422)
      #expect(try await ana.send("POST", "events/\(event)/duplicate", start).status == 422)
      #expect(try await ana.send("PATCH", "events/\(event)", #"{"title": "Lunch"}"#).status == 200)
      #expect(try await times(ana, event)[0] == "2030-01-16T03:00:00Z")
      try await app.takeNotifications()
    }
  }

  @Test func `an event that has begun by one version only moves to where the other one has it`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let made = try MadeZones(
        version: "2026b", ["Made/Later": .init(rule: "<-01>1"), "Made/Earlier": .init(rule: "<+01>-1")])
      defer { made.remove() }
      let zones = try made.database()
      let now = Timestamp.now().microseconds / 1_000_000
      /// An event in a zone that had the offset 0 when it was planned, and has another one now.
      func event(in zone: String, startingIn minutes: Int) async throws -> (id: String, start: Timestamp) {
        let start = Timestamp(microseconds: (now + Int64(minutes * 60)) * 1_000_000)
        let id = try await plan(ana, #""startTime": "2030-01-15T19:00""#, in: "Made/Place")
        try await app.database.execute(
          """
          UPDATE events
          SET time_zone = \(zone), start_time = \(start), start_offset = 0, remind_at = NULL,
            live_until = \(start.adding(seconds: 30 * 3600))
          WHERE id = \(Event.ID(id))
          """)
        return (id, start)
      }
      // By the old rules, it began half an hour ago. By the new ones, that is in half an hour: guests still come.
      let early = try await event(in: "Made/Later", startingIn: -30)
      // The reverse: its hour has come, and its page must not say that it begins later.
      let late = try await event(in: "Made/Earlier", startingIn: 30)
      // These have begun by both.
      let begun = [
        try await event(in: "Made/Later", startingIn: -90), try await event(in: "Made/Earlier", startingIn: -10),
      ]
      try await app.takeNotifications()
      #expect(try await keep(zones, in: app) == 4)
      #expect(try await times(ana, early.id)[0] == early.start.adding(seconds: 3600).rfc3339())
      #expect(try await times(ana, late.id)[0] == late.start.adding(seconds: -3600).rfc3339())
      for event in begun { #expect(try await times(ana, event.id)[0] == event.start.rfc3339()) }
      let moved = try await app.takeNotifications()
      #expect(Set(moved.compactMap { $0.payload["eventId"].string }) == [early.id, late.id])
      // No one is reminded of what has begun.
      while try await app.service.change({ try await Event.remindOfNext(in: $0) }) {}
      #expect(try await app.value("SELECT count(*) FROM notification_queue") == 0)
    }
  }

  @Test func `half past three instead of the skipped half past two is another local time`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let skipped = "2030-03-10T10:30:00Z"
      for (planned, edited, kept) in [
        ("2030-03-10T02:30", "2030-03-10T03:30", "2030-03-10T10:30:00Z"),
        ("2030-03-10T03:30", "2030-03-10T02:30", "2030-03-10T09:30:00Z"),
        // The instant alone says nothing about the reading.
        ("2030-03-10T02:30", skipped, "2030-03-10T09:30:00Z"),
      ] {
        let event = try await plan(ana, #""startTime": "\#(planned)", "answerBy": "\#(planned)""#)
        let before = try await ana.get("events/\(event)")
        #expect(before["startTime"].string == skipped)
        let stale = try await app.stale(among: [ana]) {
          try await ana.edit(event, #"{"startTime": "\#(edited)", "answerBy": "\#(edited)"}"#)
        }
        // The instant stays, so there is nothing new to read.
        #expect(stale["ana", default: []].isEmpty)
        #expect(try await ana.get("events/\(event)") == before)
        try await keep(versions.new, in: app)
        #expect(try await times(ana, event) == [kept, nil, kept], "\(planned) \(edited)")
        try await app.takeNotifications()
      }
    }
  }

  @Test func `only live events that have not begun move`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let start = #""startTime": "2030-01-15T19:00""#
      let (cancelled, begun, archived) = (
        try await plan(ana, start), try await plan(ana, start), try await plan(ana, start)
      )
      try await ana.cancelEvent(cancelled)
      try await app.database.execute(
        "UPDATE events SET start_time = '2026-01-16T03:00Z' WHERE id = ANY(\([Event.ID(begun), Event.ID(archived)].compactMap { $0 }))"
      )
      try await app.database.execute("UPDATE events SET archived_at = now() WHERE id = \(Event.ID(archived))")
      var before: [JSON] = []
      for event in [cancelled, begun, archived] { before.append(try await ana.get("events/\(event)")) }
      #expect(try await keep(versions.new, in: app) == 2)
      for (event, old) in zip([cancelled, begun, archived], before) {
        #expect(try await ana.get("events/\(event)") == old)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `an event never ends before it starts, and its deadline stays before its start`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      // From the first half past one to the second quarter past one. Both are one hour now.
      let repeated = try await plan(
        ana,
        #""startTime": "2030-11-03T08:30:00Z", "endTime": "2030-11-03T09:15:00Z", "answerBy": "2030-11-03T08:30:00Z""#)
      // Both half past ones: the second is an hour later, until there is one only.
      let twice = try await plan(ana, #""startTime": "2030-11-03T09:30:00Z", "answerBy": "2030-11-03T08:45:00Z""#)
      // Half past two did not exist, and now it does.
      let skipped = try await plan(ana, #""startTime": "2030-03-10T02:30""#)
      #expect(try await times(ana, skipped)[0] == "2030-03-10T10:30:00Z")
      try await keep(versions.new, in: app)
      #expect(
        try await times(ana, repeated) == ["2030-11-03T08:30:00Z", "2030-11-03T09:15:00Z", "2030-11-03T08:30:00Z"])
      #expect(try await times(ana, twice) == ["2030-11-03T08:30:00Z", nil, "2030-11-03T08:30:00Z"])
      #expect(try await times(ana, skipped)[0] == "2030-03-10T09:30:00Z")
      try await app.takeNotifications()
    }
  }

  @Test func `a reminder that has not been sent stays due, and a sent one is not sent again at once`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      // Starts in an hour and a half by the old rules: soon, by new ones with an hour more.
      let start = Timestamp.now().adding(seconds: 5400)
      let whole = Timestamp(microseconds: start.microseconds / 1_000_000 * 1_000_000)
      let made = try MadeZones(version: "2026b", ["Made/Place": .init(rule: "<+03>-3")])
      defer { made.remove() }
      let (waiting, sent) = (
        try await plan(ana, #""startTime": "\#(whole.rfc3339())""#, in: "Made/Place"),
        try await plan(ana, #""startTime": "\#(whole.rfc3339())""#, in: "Made/Place")
      )
      try await app.database.execute("UPDATE events SET start_offset = 7200")
      try await app.database.execute("UPDATE events SET remind_at = NULL WHERE id = \(Event.ID(sent))")
      #expect(try await keep(made.database(), in: app) == 2)
      for event in [waiting, sent] {
        #expect(try await times(ana, event)[0] == whole.adding(seconds: -3600).rfc3339())
      }
      let due: [Event.ID] = try await app.database.rows("SELECT id FROM events WHERE remind_at <= now()").map {
        try $0["id"]
      }
      #expect(due == [Event.ID(waiting)].compactMap { $0 })
      _ = versions
      try await app.takeNotifications()
    }
  }

  @Test func `visitors get no mail, and their calendars see another version`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      let event = try await plan(ana, #""startTime": "2030-01-15T19:00""#)
      try await app.database.execute("UPDATE events SET visitor_count = 1 WHERE id = \(Event.ID(event))")
      let feed = try await app.calendarFeed(try await ana.makeCalendarLink())
      try await app.takeMails()
      try await keep(versions.new, in: app)
      #expect(try await app.value("SELECT count(*) FROM mails") == 0)
      let moved = try await app.calendarFeed(feed.path)
      #expect(moved.tag != feed.tag && moved.events[event]?.contains("SEQUENCE:1") == true)
      try await app.takeNotifications()
    }
  }

  @Test func `a worker that dies midway has done nothing, and one that meets an edit loses nothing`() async throws {
    struct Killed: Error {}
    try await withOldRules { app, versions in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await plan(ana, #""startTime": "2030-01-15T19:00""#, inviting: [ben])
      try await app.takeNotifications()
      let before = try await app.contents()
      await #expect(throws: Killed.self) {
        try await app.service.change { change in
          #expect(try await Event.keepLocalTimes(by: versions.new, atMost: 10, in: change) == 1)
          throw Killed()
        }
      }
      #expect(try await app.contents() == before)

      // Edits that keep or move the time, at the same moment as two workers.
      for round in 0..<12 {
        let hour = 10 + round % 6
        let body =
          round.isMultiple(of: 2) ? #"{"title": "Dinner \#(round)"}"# : #"{"startTime": "2030-01-15T\#(hour):00"}"#
        try await app.database.execute(
          "UPDATE events SET start_time = '2030-01-16T03:00Z', start_offset = -28800, zone_rules = '2026a'")
        async let edited = ana.edit(event, body)
        async let first = keep(versions.new, in: app)
        async let second = keep(versions.new, in: app)
        _ = try await (edited, first, second)
        try await keep(versions.new, in: app)
        let expected = round.isMultiple(of: 2) ? "2030-01-16T02:00:00Z" : "2030-01-15T\(hour + 7):00:00Z"
        let now = try await ana.get("events/\(event)")
        #expect(now["startTime"].string == expected, "round \(round)")
        if round.isMultiple(of: 2) { #expect(now["title"].string == "Dinner \(round)") }
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a batch has a limit, and skips events that an edit has locked`() async throws {
    try await withOldRules { app, versions in
      let ana = try await app.signUp("ana")
      for day in 10...16 { _ = try await plan(ana, #""startTime": "2030-01-\#(day)T19:00""#) }
      let locked = try await plan(ana, #""startTime": "2030-01-20T19:00""#)
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await holder.transaction { transaction in
        try await transaction.rows("SELECT id FROM events WHERE id = \(Event.ID(locked)) FOR NO KEY UPDATE")
        let counts = try await (0..<4).asyncMap { _ in
          try await app.service.change { try await Event.keepLocalTimes(by: versions.new, atMost: 3, in: $0) }
        }
        #expect(counts.allSatisfy { $0 <= 3 } && counts.reduce(0, +) <= 7)
      }
      try await keep(versions.new, in: app)
      #expect(try await app.value("SELECT count(*) FROM events WHERE zone_rules = '2026b'") == 8)
      #expect(try await times(ana, locked)[0] == "2030-01-21T02:00:00Z")
      try await app.takeNotifications()
    }
  }
}

extension Sequence {
  fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async throws -> [Value] {
    var values: [Value] = []
    for element in self { values.append(try await transform(element)) }
    return values
  }
}
