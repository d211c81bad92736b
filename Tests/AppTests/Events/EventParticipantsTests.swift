import Postgres
import Testing

@testable import App

/// Lists with `include=participants`: each event has its first five guests.
@Suite struct EventParticipantsTests {
  @Test func `lists with participants have the first five guests of each event, as the event itself has them`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(7, around: ana)
      let ben = guests[0]
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      try await guests[6].answer("going", to: id)
      try await guests[5].answer("maybe", to: id)
      try await ben.answer("declined", to: id)
      let quiet = try await ana.createEvent("Quiet", inviting: [ben], startTime: "2030-06-01T18:00:00Z", endTime: nil)
      let alone = try await ana.createEvent("Alone", startTime: "2030-07-01T18:00:00Z", endTime: nil)
      try await app.takeNotifications()

      let first = try await ana.get("events/\(id)")["participants"].array
      #expect(first.count == 7)
      #expect(first.prefix(2).map { $0["status"].string } == ["going", "maybe"])
      // They are the entries of the guest list.
      let entries = try await ana.get("events/\(id)/invitations")["items"].array
      #expect(first.allSatisfy { entries.contains($0) && $0["id"] == $0["user"]["id"] })
      let list = try await ana.get("events?include=participants")["items"].array
      #expect(list.map { $0["participants"].array } == [Array(first.prefix(5)), quiet["participants"].array, []])
      #expect(list[2].keys.contains("participants") && list[2]["id"] == alone["id"])
      let named = try await ana.get("events?ids=\(quiet["id"].string ?? ""),\(id)&include=participants")["items"].array
      #expect(named == [list[1], list[0]])
      let invitations = try await ben.get("invitations?include=participants")["items"].array
      #expect(Set(invitations.map { $0["event"]["participants"].array.count }) == [5, 1])
      let events = try await ben.get("events?include=participants")["items"].array
      #expect(invitations.map { $0["event"] } == [events[1], events[0]])
      let declined = try await ben.get("invitations?status=declined&include=participants")["items"].array
      #expect(declined.map { $0["event"]["participants"].array } == [Array(first.prefix(5))])
      try await app.database.execute("UPDATE events SET archived_at = now() WHERE id = \(Event.ID(id))")
      let past = try await ana.get("events?when=past&include=participants")["items"].array
      #expect(past.map { $0["participants"].array } == [Array(first.prefix(5))])
    }
  }

  @Test func `lists with participants are not collections`() async throws {
    try await TestApp.run { app in
      let (_, ben, _, _) = try await app.hostAndGuests()
      for path in ["events", "invitations"] {
        let plain = try await ben.send("GET", path)
        let tag = try #require(plain.header("ETag"))
        #expect(plain.json["items"].array.count == 1)
        let list = try await ben.send("GET", "\(path)?include=participants", headers: [("If-None-Match", "*, \(tag)")])
        #expect(list.status == 200 && list.header("ETag") == nil)
        #expect(list.json["timestamp"] == .null && list.json["items"].array.count == 1)
        let refused = try await ben.send("GET", "\(path)?include=other")
        #expect(refused.status == 422 && refused.badFields == ["include"])
      }
      #expect(try await ben.send("GET", "events?ids=\(Event.ID.new())&include=").badFields == ["include"])
      // Plain lists are as they were.
      #expect(try await !ben.get("events")["items"][0].keys.contains("participants"))
      #expect(try await !ben.get("invitations")["items"][0]["event"].keys.contains("participants"))
      try await app.takeNotifications()
    }
  }

  @Test func `pages with participants neither skip nor repeat an event`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(6, around: ana)
      for number in 0..<7 { try await ana.createEvent("\(number)", inviting: Array(guests.prefix(number))) }
      for phone in [ana, guests[0]] {
        let plain = try await phone.get("events")["items"].array.map { $0["id"] }
        let items = try await phone.pages(of: "events?include=participants", limit: 2)
        #expect(items.map { $0["id"] } == plain)
        for item in items {
          #expect(item["participants"].array.count == min(Int(item["title"].string ?? "") ?? 0, 5))
        }
      }
      let invitations = try await guests[0].pages(of: "invitations?include=participants", limit: 4)
      #expect(invitations.map { $0["event"]["title"].string } == ["6", "5", "4", "3", "2", "1"])
      // A cursor of one kind of list works in the other.
      let page = try await ana.get("events?limit=3")
      let cursor = try #require(page["nextCursor"].string)
      let rest = try await ana.get("events?include=participants&cursor=\(cursor)")
      #expect(rest["items"].array.count == 4 && rest["timestamp"] == .null)
      try await app.takeNotifications()
    }
  }

  @Test func `participants on the other side of a block are left out, and the next ones take their places`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(8, around: ana)
      let ben = guests[0]
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      try await ben.block(guests[1])
      try await guests[2].block(ben)
      let expected = try await ana.get("events/\(id)")["participants"].array
        .filter { ![guests[1].id, guests[2].id].contains($0["user"]["id"].string ?? "") }.prefix(5)
      let list = try await ben.get("events?include=participants")["items"][0]
      #expect(list["participants"].array == Array(expected))
      #expect(list["counts"]["invited"].int == 8)
      let invitation = try await ben.get("invitations?include=participants")["items"][0]
      #expect(invitation["event"] == list)
      #expect(try await ben.get("events?ids=\(id)&include=participants")["items"][0] == list)
      try await app.takeNotifications()
    }
  }

  @Test func `with 10,000 guests, the participants of an event are five rows of an index`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let ben = try await app.crowd(1, around: ana)[0]
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let event = try #require(Event.ID(id))
      try await app.addGuests(9999, to: event)
      // Among many events with few guests, which the planner takes for the rule.
      try await app.database.batch(
        """
        WITH small AS (
          INSERT INTO events (id, creator_id, title, start_time, time_zone, live_until, start_offset, zone_rules)
          SELECT gen_random_uuid(), \(ana.userID), 'Small', now(), 'UTC', now(), 0, '2025b'
          FROM generate_series(1, 20000)
          RETURNING id
        ), guests AS (
          SELECT id FROM users WHERE username LIKE 'more%' LIMIT 3
        )
        INSERT INTO invitations (event_id, user_id) SELECT small.id, guests.id FROM small CROSS JOIN guests
        """)
      try await app.database.execute("ANALYZE")
      let list = try await ben.get("events?include=participants")["items"][0]
      #expect(list["participants"].array.count == 5)
      // With this many guests, other lists leave them out.
      #expect(list["counts"]["invited"].int == 10_000)
      #expect(try await ben.get("events")["items"][0]["counts"] == .null)
      let membership = Event.memberships(of: ben.userID, where: "event_id = \(event)")
      let statement = Event.withParticipants(
        "SELECT \(Event.columns) FROM \(Event.shown("(\(membership))", to: ben.userID))", order: "event.id",
        atMost: Event.participantsListed, for: ben.userID)
      let plan = try await app.database.pipeline(
        Event.readingInOrder, "EXPLAIN (ANALYZE, TIMING OFF) \(statement)")[1].map { try $0[0] as String }
      let scans = plan.filter { $0.contains("on invitations") && $0.contains("invitations_in_order") }
      #expect(scans.count == 1 && scans[0].contains("(actual rows=5"), "\(plan.joined(separator: "\n"))")
      try await app.takeNotifications()
    }
  }
}
