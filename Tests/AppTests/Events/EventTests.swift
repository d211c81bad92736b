import Postgres
import Testing

@testable import App

@Suite struct EventTests {
  @Test func `an event is created with all its fields and its guests`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let answer = try await ana.send(
        "POST", "events",
        """
        {"title": " Picnic ", "note": "Bring a blanket", "startTime": "2030-05-01T20:00:00+02:00",
         "endTime": "2030-05-01T20:00:00.999Z", "timeZone": "Europe/Berlin",
         "location": {"name": "Tempelhof", "latitude": 52.4731, "longitude": 13.4039}, "capacity": 5,
         "inviteeIds": ["\(ben.id.uppercased())"]}
        """)
      #expect(answer.status == 201, "\(answer.body)")
      let event = answer.json
      #expect(event["title"].string == "Picnic")
      #expect(event["startTime"].string == "2030-05-01T18:00:00Z")
      #expect(event["endTime"].string == "2030-05-01T20:00:00Z")
      #expect(event["location"]["latitude"] == .number("52.4731"))
      #expect(event["capacity"].int == 5)
      #expect(event["status"].string == "scheduled")
      #expect(event["version"].int == 1)
      #expect(event["myStatus"].string == "creator" && event["myRole"].string == "creator")
      #expect(event["creator"]["id"].string == ana.id && event["hosts"] == .array([event["creator"]]))
      #expect(event["myPlusOnes"].int == 0 && event["answerBy"] == .null && event.keys.contains("answerBy"))
      #expect(event["counts"]["invited"].int == 1)
      #expect(event["participants"].array.map { $0["user"]["username"].string } == ["ben"])
      #expect(answer.header("ETag") == "\"1\"")
      #expect(answer.header("Location") == "/api/v1/events/\(event["id"].string ?? "")")

      let received = try await app.takeNotifications()
      #expect(received.map { $0 == ("event-invited", ben) } == [true])
      #expect(received[0].payload["eventId"] == event["id"])
      #expect(received[0].payload["userId"].string == ana.id)

      let listed = try await ben.get("events")["items"][0]
      #expect(listed["myStatus"].string == "invited" && listed["myRole"].string == "guest")
      #expect(listed["hosts"] == event["hosts"])
      #expect(listed["myPlusOnes"].int == 0 && listed["answerBy"] == .null)
      #expect(listed.keys == event.keys.subtracting(["participants"]))
      #expect(listed["counts"]["invited"].int == 1)
      let invitation = try await ben.get("invitations")["items"][0]
      #expect(invitation["status"].string == "invited")
      #expect(invitation["event"] == listed)
    }
  }

  @Test func `guests must be friends, and one stranger refuses them all`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let answer = try await ana.send(
        "POST", "events",
        """
        {"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC",
         "inviteeIds": ["\(ben.id)", "\(cleo.id)", "\(User.ID.new())", "\(ana.id)"]}
        """)
      #expect(answer.status == 422)
      #expect(answer.badFields == ["inviteeIds[1]", "inviteeIds[2]", "inviteeIds[3]"])
      #expect(try await ana.get("events")["items"].array.isEmpty)
      #expect(try await ben.get("events")["items"].array.isEmpty)
    }
  }

  @Test func `a friend who is listed twice is invited once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben, ben])
      #expect(event["counts"]["invited"].int == 1)
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  @Test func `strangers cannot find out that an event exists`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent()["id"].string ?? ""
      let unknown = try await ben.send("GET", "events/\(Event.ID.new())")
      for (method, path, body) in [
        ("GET", "events/\(id)", nil), ("PATCH", "events/\(id)", #"{"title": "Mine"}"#),
        ("PUT", "events/\(id)/invitations/me", #"{"status": "going"}"#),
      ] {
        let answer = try await ben.send(method, path, body)
        #expect(answer.status == 404)
        #expect(answer.json["type"] == unknown.json["type"])
        #expect(answer.json["detail"] == unknown.json["detail"])
      }
    }
  }

  @Test func `a guest cannot edit the event`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await app.takeNotifications()
      #expect(try await ben.edit(id, #"{"title": "Mine"}"#, expecting: 403).problem == "not-a-host")
    }
  }

  @Test func `an edit keeps absent fields, clears null fields, and notifies guests who have not declined`() async throws
  {
    try await TestApp.run { app in
      let (ana, ben, cleo, id) = try await app.hostAndGuests()
      try await cleo.answer("declined", to: id)
      try await app.takeNotifications()

      let edited = try await ana.edit(
        id, #"{"endTime": null, "note": "New", "startTime": "2030-05-01T19:00:00Z", "title": "Picnic"}"#)
      #expect(edited.json["version"].int == 2)
      #expect(edited.header("ETag") == "\"2\"")
      #expect(edited.json["endTime"] == .null)
      #expect(edited.json["timeZone"].string == "Europe/Berlin")
      let received = try await app.takeNotifications()
      #expect(received.map { $0 == ("event-updated", ben) } == [true])
      let changes = received[0].payload["changes"].array
      #expect(changes.map { $0["field"].string } == ["note", "startTime", "endTime"])
      #expect(changes.map { $0["old"].string } == [nil, "2030-05-01T18:00:00Z", "2030-05-01T20:00:00Z"])
      #expect(changes.map { $0["new"].string } == ["New", "2030-05-01T19:00:00Z", nil])
      #expect(changes[0]["old"] == .null && changes[2]["new"] == .null)

      let same = try await ana.edit(
        id,
        #"{"note": "New", "unknown": 1, "hosts": [], "myRole": "guest", "myPlusOnes": 3}"#)
      #expect(same.json == edited.json)
    }
  }

  @Test func `an edit of an outdated version is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try await ana.createEvent()["id"].string ?? ""
      try await ana.edit(id, #"{"title": "B"}"#, headers: [("If-Match", "\"1\"")])
      let lost = try await ana.edit(id, #"{"title": "C"}"#, headers: [("If-Match", "\"1\"")], expecting: 412)
      #expect(lost.problem == "lost-update")
      try await ana.edit(id, #"{"title": "D"}"#, headers: [("If-Match", "*")])
      try await ana.edit(id, #"{"title": "E"}"#)
      #expect(try await ana.get("events/\(id)")["title"].string == "E")
      // Of many concurrent edits of one version, one succeeds.
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for index in 0..<10 {
          group.addTask {
            try await ana.send("PATCH", "events/\(id)", #"{"title": "\#(index)"}"#, headers: [("If-Match", "\"4\"")])
              .status
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses.filter { $0 == 200 }.count == 1)
      #expect(statuses.filter { $0 == 412 }.count == 9)
    }
  }

  @Test func `all invalid fields of an event are listed`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let answer = try await ana.send(
        "POST", "events",
        """
        {"title": "   ", "note": 5, "startTime": "tomorrow", "timeZone": "Mars/Olympus", "capacity": 0,
         "location": {"name": "", "latitude": 91}, "inviteeIds": ["\(ana.id)", "x"]}
        """)
      #expect(answer.status == 422)
      #expect(
        answer.badFields == [
          "title", "note", "startTime", "timeZone", "location.name", "location.latitude", "location.longitude",
          "capacity",
          "inviteeIds[1]",
        ])
      let order = try await ana.send(
        "POST", "events",
        #"{"title": "A", "startTime": "2030-05-01T18:00:00Z", "endTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#)
      #expect(order.badFields == ["endTime"])
      let id = try await ana.createEvent()["id"].string ?? ""
      #expect(
        try await ana.edit(id, #"{"startTime": "2031-01-01T00:00:00Z"}"#, expecting: 422).badFields == ["endTime"])
      #expect(try await ana.edit(id, #"{"title": null}"#, expecting: 422).badFields == ["title"])
    }
  }

  @Test func `live events are sorted by start and paged, and past events are in the archive`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for day in [3, 1, 2, 5, 4] {
        _ = try await ana.createEvent(
          "Day \(day)", inviting: [ben], startTime: "2030-05-0\(day)T10:00:00Z", endTime: nil)
      }
      _ = try await ana.createEvent("Old", inviting: [ben], startTime: "2020-01-01T10:00:00Z", endTime: nil)
      try await app.takeNotifications()
      let stamps = try await ben.refreshLists()
      #expect(try await app.database.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) } == 1)
      #expect(try await ben.stale(stamps) == [.events, .invitations])
      for phone in [ana, ben] {
        var titles: [String] = []
        var cursor: String?
        repeat {
          let page = try await phone.get("events?limit=2" + (cursor.map { "&cursor=\($0)" } ?? ""))
          titles += page["items"].array.compactMap { $0["title"].string }
          cursor = page["nextCursor"].string
        } while cursor != nil
        #expect(titles == (1...5).map { "Day \($0)" })
        let past = try await phone.get("events?when=past")
        #expect(past["items"].array.map { $0["title"].string } == ["Old"])
        #expect(past["timestamp"] == .null)
      }
      let old = try await ana.get("events?when=past")["items"][0]["id"].string ?? ""
      #expect(try await ana.edit(old, #"{"title": "New"}"#, expecting: 409).problem == "event-archived")
      #expect(try await ben.answer("going", to: old, expecting: 409).problem == "event-archived")
    }
  }
}

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
      #expect(refused.json["errors"][0]["message"].string == "must be 0: this event takes no plus-ones")
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
      let answer = try await ana.get("events?ids=\(past),\(Event.ID.new()),\(id)")
      #expect(answer["items"].array.map { $0["id"].string } == [past, id])
      #expect(answer["items"][0]["participants"] == .null && answer["timestamp"] == .null)
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
