import Postgres
import Testing

@testable import App

/// The guest list, inviting to an existing event, and withdrawing invitations.
@Suite struct GuestListTests {
  @Test func `the host and the guests read the guest list`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      let id = try await ana.createEvent(inviting: [ben, cleo])["id"].string ?? ""
      try await cleo.answer("maybe", to: id)
      try await app.takeNotifications()
      let list = try await ana.send("GET", "events/\(id)/invitations")
      #expect(list.header("ETag") == nil)
      #expect(list.json["timestamp"] == .null && list.json["nextCursor"] == .null)
      #expect(list.json.keys == ["items", "nextCursor", "timestamp"])
      let items = list.json["items"].array
      #expect(items.map { $0["user"]["username"].string } == ["ben", "cleo"])
      #expect(items.map { $0["status"].string } == ["invited", "maybe"])
      #expect(items.map { $0["answeredAt"].string == nil } == [true, false])
      for item in items {
        #expect(item.keys == ["id", "user", "name", "status", "plusOnes", "answeredAt"])
        #expect(item["user"].keys == ["id", "username", "displayName", "pictureUrl"])
        #expect(item["id"] == item["user"]["id"] && item["name"] == item["user"]["displayName"])
        #expect(item["plusOnes"].int == 0)
      }
      for guest in [ben, cleo] { #expect(try await guest.get("events/\(id)/invitations") == list.json) }
      let empty = try await ana.createEvent()["id"].string ?? ""
      #expect(try await ana.get("events/\(empty)/invitations")["items"].array.isEmpty)
      // The list stays readable.
      try await ana.cancelEvent(id)
      #expect(try await ben.get("events/\(id)/invitations") == list.json)
      try await app.takeNotifications()
    }
  }

  @Test func `pages of guests neither repeat nor skip a guest who stays, despite concurrent answers`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(40, around: ana)
      let id = try await ana.createEvent(inviting: Array(guests.prefix(30)), capacity: 3)["id"].string ?? ""
      let items = try await guests[0].pages(of: "events/\(id)/invitations", limit: 7) { page in
        for guest in guests[(page * 4)..<(page * 4 + 4)] { try await guest.answer("going", to: id) }
        try await ana.invite([guests[29 + page]], to: id)
        try await ana.withdraw(guests[30 - page], from: id)
      }
      let seen = items.compactMap { $0["user"]["id"].string }
      #expect(Set(seen).count == seen.count)
      #expect(seen == seen.sorted())
      #expect(Set(seen).isSuperset(of: guests.prefix(24).map(\.id)))
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `inviting notifies the new guests and touches the lists of all users who see the counts`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(3, around: ana)
      let id = try await ana.createEvent(inviting: [guests[0]])["id"].string ?? ""
      try await guests[0].answer("declined", to: id)
      try await app.takeNotifications()
      let invited = try await app.expectStale(of: ana, and: guests, notified: [guests[1], guests[2]]) {
        try await ana.invite([guests[1], guests[2], guests[1]], to: id)
      }
      #expect(invited.json["counts"]["invited"].int == 2)
      #expect(invited.header("ETag") == "\"1\"")
      let received = try await app.takeNotifications()
      #expect(received.allSatisfy { $0.type == "event-invited" && $0.payload["userId"].string == ana.id })
      #expect(Set(received.map(\.recipient)) == [guests[1].id, guests[2].id] && received.count == 2)
      #expect(try await guests[1].get("invitations")["items"][0]["event"]["id"].string == id)
      #expect(try await guests[1].get("events/\(id)")["myStatus"].string == "invited")

      // Inviting again loses no answer and notifies no one twice, even if they are no longer friends.
      try await app.database.execute("DELETE FROM friendships")
      let stale = try await guests[0].stale { try await ana.invite(guests, to: id) }
      #expect(stale == [])
      #expect(try await guests[0].get("events/\(id)")["myStatus"].string == "declined")
      try await ana.invite([], to: id)
      try await app.expectConsistency()
    }
  }

  @Test func `either all are invited, or none`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let (cleo, dev) = try await app.friends("cleo", "dev")
      let id = try await ana.createEvent(inviting: [dev], expecting: 422)["id"].string ?? ""
      #expect(id.isEmpty)
      let event = try await ana.createEvent()["id"].string ?? ""
      let ids = [ben.id, cleo.id, ana.id, User.ID.new().description, ben.id].map { "\"\($0)\"" }.joined(separator: ",")
      let refused = try await ana.send("POST", "events/\(event)/invitations", #"{"userIds": [\#(ids)]}"#)
      #expect(refused.status == 422)
      #expect(refused.badFields == ["userIds[1]", "userIds[2]", "userIds[3]"])
      #expect(try await ana.get("events/\(event)/invitations")["items"].array.isEmpty)
      #expect(try await ben.get("invitations")["items"].array.isEmpty)
      try await ana.invite([ben], to: event)
      try await app.database.execute("UPDATE events SET archived_at = now()")
      #expect(try await ana.invite([ben], to: event, expecting: 409).problem == "event-archived")
      #expect(try await ana.withdraw(ben, from: event, expecting: 409).problem == "event-archived")
      try await app.takeNotifications()
    }
  }

  /// Guests' lists show counts up to 200 invitations, and hosts' lists always do.
  @Test func `the 201st guest removes the counts from the lists, and they come back below that`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(202, around: ana)
      let id = try await ana.createEvent(inviting: Array(guests.prefix(200)))["id"].string ?? ""
      let first = guests[0]
      let coHost = try await app.crowd(1, around: ana, named: "host")[0]
      try await ana.addHost(coHost, to: id)
      func counts(_ phone: Phone) async throws -> JSON { try await phone.get("events")["items"][0]["counts"] }
      #expect(try await counts(first)["invited"].int == 200)
      #expect(try await first.stale { try await ana.invite([guests[200]], to: id) } == [.events, .invitations])
      #expect(try await counts(first) == .null)
      for host in [ana, coHost] { #expect(try await counts(host)["invited"].int == 201) }
      #expect(try await first.stale { try await ana.invite([guests[201]], to: id) } == [])
      #expect(try await first.stale { try await ana.withdraw(guests[200], from: id) } == [])
      #expect(try await first.stale { try await ana.withdraw(guests[201], from: id) } == [.events, .invitations])
      #expect(try await counts(first)["invited"].int == 200)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `up to 500 guests are invited in one request, and up to 10,000 to one event`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(501, around: ana)
      let id = try await ana.createEvent()["id"].string ?? ""
      let event = try #require(Event.ID(id))
      #expect(try await ana.invite(guests, to: id, expecting: 422).badFields == ["userIds"])
      let invited = try await ana.invite(Array(guests.prefix(500)), to: id)
      #expect(invited.json["counts"]["invited"].int == 500)
      try await app.addGuests(9500, to: event)
      // One more guest is refused, but existing guests may be listed again.
      #expect(try await ana.invite([guests[0], guests[500]], to: id, expecting: 422).badFields == ["userIds"])
      try await ana.invite(Array(guests.prefix(500)), to: id)
      try await ana.withdraw(guests[499], from: id)
      try await ana.invite([guests[500]], to: id)
      #expect(try await guests[500].answer("going", to: id).json["counts"]["going"].int == 1)
      try await ana.edit(id, #"{"title": "Festival"}"#)
      let received = try await app.database.rows(
        "SELECT cardinality(recipient_ids) FROM notification_queue WHERE type = 'event-updated'")
      #expect(try received.map { try $0[0] as Int } == [10_000])
      try await app.database.execute("DELETE FROM notification_queue")
      try await app.expectConsistency()
    }
  }

  @Test func `a guest whose invitation is withdrawn is notified and no longer sees the event`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(3, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
      for guest in guests.dropLast() { try await guest.answer("going", to: id) }
      try await app.takeNotifications()
      let withdrawn = try await app.expectStale(of: ana, and: guests, notified: [guests[0], guests[1]]) {
        try await ana.withdraw(guests[0], from: id)
      }
      #expect(withdrawn.json["counts"]["going"].int == 1 && withdrawn.json["counts"]["waitlisted"].int == 0)
      let received = try await app.takeNotifications()
      #expect(received.count == 2)
      #expect(received.contains { $0 == ("invitation-withdrawn", guests[0]) && $0.payload["eventId"].string == id })
      #expect(received.contains { $0 == ("waitlist-promoted", guests[1]) })
      #expect(try await guests[0].send("GET", "events/\(id)").problem == "event-not-found")
      #expect(try await guests[0].send("GET", "events/\(id)/invitations").problem == "event-not-found")
      #expect(try await guests[0].answer("going", to: id, expecting: 404).problem == "event-not-found")
      for path in ["events", "invitations"] { #expect(try await guests[0].get(path)["items"].array.isEmpty) }

      let stale = try await guests[1].stale {
        #expect(try await ana.withdraw(guests[0], from: id).json == withdrawn.json)
        let unknown = try await ana.send("DELETE", "events/\(id)/invitations/\(User.ID.new())")
        #expect(unknown.json == withdrawn.json)
      }
      #expect(stale == [])
      try await ana.invite([guests[0]], to: id)
      #expect(try await guests[0].get("events/\(id)")["myStatus"].string == "invited")
      #expect(try await app.takeNotifications().map { $0 == ("event-invited", guests[0]) } == [true])
      try await app.expectConsistency()
    }
  }

  @Test func `inviting and withdrawing again and again leaves one notification`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guest = try await app.crowd(1, around: ana)[0]
      let other = try await ana.createEvent("Other", inviting: [guest])["id"].string ?? ""
      let id = try await ana.createEvent()["id"].string ?? ""
      for round in 0..<5 {
        try await ana.invite([guest], to: id)
        if round % 2 == 0 { try await app.fanOut() }
        try await ana.withdraw(guest, from: id)
        if round % 2 == 1 { try await app.fanOut() }
      }
      try await app.fanOut()
      let items = try await guest.get("notifications")["items"].array
      #expect(items.map { $0["type"].string } == ["invitation-withdrawn", "event-invited"])
      #expect(items.map { $0["eventId"].string } == [id, other])
      try await app.takeNotifications()
    }
  }
}
