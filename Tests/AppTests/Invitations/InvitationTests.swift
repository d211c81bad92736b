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
}
