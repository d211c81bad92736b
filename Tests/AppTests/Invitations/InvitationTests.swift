import Postgres
import Testing

@testable import App

@Suite struct InvitationTests {
  @Test func `an answer sets the state and notifies the host`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await app.takeNotifications()
      for (answer, counts) in [("going", "going"), ("maybe", "maybe"), ("declined", "declined"), ("going", "going")] {
        let event = try await ben.answer(answer, to: id).json
        #expect(event["myStatus"].string == answer)
        #expect(event["counts"][counts].int == 1)
        #expect(event["counts"]["invited"].int == 0)
        let received = try await app.takeNotifications()
        #expect(received.map { $0 == ("invitation-answered", ana) } == [true])
        #expect(received[0].payload["status"].string == answer)
      }
      // The same answer again changes nothing.
      let stale = try await ana.stale { try await ben.answer("going", to: id) }
      #expect(stale == [])
      #expect(try await ben.answer("waitlisted", to: id, expecting: 422).badFields == ["status"])
      #expect(try await ana.answer("going", to: id, expecting: 409).problem == "own-event")
    }
  }

  @Test func `an answer with plus-ones is refused by an event that takes none`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let path = "events/\(id)/invitations/me"
      for number in ["0", "0.0", "null"] {
        let taken = try await ben.send("PUT", path, #"{"status": "maybe", "plusOnes": \#(number)}"#)
        #expect(taken.status == 200, "\(taken.body)")
        #expect(taken.json["myStatus"].string == "maybe" && taken.json["myPlusOnes"].int == 0)
      }
      for (number, code) in [
        ("1", "no-plus-ones"), ("10000", "no-plus-ones"), ("10001", "out-of-range"), ("-1", "out-of-range"),
        ("0.5", "out-of-range"), (#""1""#, "wrong-type"), ("true", "wrong-type"),
      ] {
        let refused = try await ben.send("PUT", path, #"{"status": "going", "plusOnes": \#(number)}"#)
        #expect(refused.status == 422 && refused.badFields == ["plusOnes"], "\(refused.body)")
        #expect(refused.json["errors"][0]["code"].string == code, "\(refused.body)")
      }
      let both = try await ben.send("PUT", path, #"{"status": "soon", "plusOnes": -1}"#)
      #expect(both.badFields == ["status", "plusOnes"])
      let refused = try await ben.send("PUT", path, #"{"status": "maybe", "plusOnes": 1}"#)
      #expect(refused.json["errors"][0]["message"].string == "must be 0: this event does not allow plus-ones")
      #expect(try await ben.get("events/\(id)")["myStatus"].string == "maybe")
      try await app.takeNotifications()
    }
  }

  @Test func `invitations are filtered by state`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let going = try await ana.createEvent("A", inviting: [ben])["id"].string ?? ""
      _ = try await ana.createEvent("B", inviting: [ben])
      try await ben.answer("going", to: going)
      try await app.takeNotifications()
      #expect(try await ben.get("invitations")["items"].array.map { $0["event"]["title"].string } == ["B", "A"])
      let open = try await ben.get("invitations?status=invited")
      #expect(open["items"].array.map { $0["event"]["title"].string } == ["B"])
      #expect(open["timestamp"] == .null)
      #expect(try await ben.send("GET", "invitations?status=x").badFields == ["status"])
    }
  }

  @Test func `a full event has a waiting list that moves up`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var guests: [Phone] = []
      for name in ["ben", "cleo", "dev", "emre"] {
        guests.append(try await app.signUp(name))
        try await app.befriend(ana, guests[guests.count - 1])
      }
      let id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
      for guest in guests { try await guest.answer("going", to: id) }
      func states() async throws -> [String?] {
        var states: [String?] = []
        for guest in guests { states.append(try await guest.get("events/\(id)")["myStatus"].string) }
        return states
      }
      #expect(try await states() == ["going", "waitlisted", "waitlisted", "waitlisted"])
      try await app.takeNotifications()

      try await guests[0].answer("maybe", to: id)
      #expect(try await states() == ["maybe", "going", "waitlisted", "waitlisted"])
      #expect(
        try await app.takeNotifications().contains { $0 == ("waitlist-promoted", guests[1]) })
      try await ana.edit(id, #"{"capacity": 2}"#)
      #expect(try await states() == ["maybe", "going", "going", "waitlisted"])
      #expect(
        try await app.takeNotifications().filter { $0.type == "waitlist-promoted" }.map(\.recipient) == [guests[2].id])
      try await ana.edit(id, #"{"capacity": 1}"#)
      #expect(try await states() == ["maybe", "going", "going", "waitlisted"])
      try await ana.edit(id, #"{"capacity": null}"#)
      #expect(try await states() == ["maybe", "going", "going", "going"])
      try await app.takeNotifications()
    }
  }

  @Test func `no place is given twice, even with many concurrent answers`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(40, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 7)["id"].string ?? ""
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, guest) in guests.enumerated() {
          group.addTask {
            try await guest.answer("going", to: id)
            if index % 5 == 0 { try await guest.answer("declined", to: id) }
          }
        }
        try await group.waitForAll()
      }
      let counts = try await ana.get("events/\(id)")["counts"]
      #expect(counts["going"].int == 7)
      #expect(counts["declined"].int == 8)
      #expect(counts["waitlisted"].int == 25)
      for status in Invitation.Status.allCases {
        let counted: Int? = try await app.value(
          "SELECT count(*) FROM invitations WHERE event_id = \(Event.ID(id)) AND status = \(status)")
        #expect(counts[status.rawValue].int == counted)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `events are read by their ids, in order, live and archived, without other people's`() async throws {
    try await TestApp.run { app in
      let (ana, ben, _, id) = try await app.hostAndGuests()
      let past = try await ana.createEvent("Past")["id"].string ?? ""
      try await app.database.execute("UPDATE events SET archived_at = now() WHERE id = \(Event.ID(past))")
      let response = try await ana.get("events?ids=\(past),\(Event.ID.new()),\(id)")
      #expect(response["items"].array.map { $0["id"].string } == [past, id])
      #expect(response["items"][0]["participants"] == .null && response["timestamp"] == .null)
      #expect(try await ben.get("events?ids=\(past),\(id)")["items"].array.map { $0["id"].string } == [id])
      #expect(try await ana.send("GET", "events?ids=\(id)&when=past").badFields == ["when"])
      try await app.takeNotifications()
    }
  }

  @Test func `an answer touches the lists of all users who see the counts`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo, id) = try await app.hostAndGuests()
      try await app.fanOut()
      let (hers, cleos) = (try await ana.refreshLists(), try await cleo.refreshLists())
      #expect(try await ben.stale { try await ben.answer("going", to: id) } == [.events, .invitations])
      #expect(try await ana.stale(hers) == [.events, .notifications])
      #expect(try await cleo.stale(cleos) == [.events, .invitations])
      try await app.takeNotifications()
    }
  }
}
