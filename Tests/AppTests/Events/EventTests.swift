import Postgres
import Testing

@testable import App

@Suite struct EventTests {
  /// An event is read as a record, whose fields have an order and no names.
  @Test func `each member of an event has the value of its own column`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try #require(Event.ID(try await ana.createEvent()["id"].string ?? ""))
      try await app.database.execute(
        """
        UPDATE events
        SET title = 'Title', note = 'Note', start_time = '2031-01-01T10:00Z', end_time = '2031-01-02T10:00Z',
          time_zone = 'Asia/Tokyo', location_name = 'Place', latitude = 1.5, longitude = 2.5, url = 'https://a',
          capacity = 90, answer_by = '2030-12-01T10:00Z', max_plus_ones = 7, version = 8, invited_count = 11, going_count = 12,
          maybe_count = 13, declined_count = 14, waitlisted_count = 15, pending_count = 16, plus_ones_count = 17,
          created_at = '2030-01-01T10:00Z', updated_at = '2030-01-02T10:00Z'
        WHERE id = \(id)
        """)
      let event = try await ana.get("events/\(id)")
      #expect(event["title"].string == "Title" && event["note"].string == "Note")
      #expect(event["startTime"].string == "2031-01-01T10:00:00Z" && event["endTime"].string == "2031-01-02T10:00:00Z")
      #expect(event["timeZone"].string == "Asia/Tokyo" && event["location"]["name"].string == "Place")
      #expect(event["location"]["latitude"] == .number("1.5") && event["location"]["longitude"] == .number("2.5"))
      #expect(event["url"].string == "https://a")
      #expect(event["capacity"].int == 90 && event["maxPlusOnes"].int == 7 && event["version"].int == 8)
      #expect(event["answerBy"].string == "2030-12-01T10:00:00Z")
      #expect(event["createdAt"].string == "2030-01-01T10:00:00Z")
      #expect(event["updatedAt"].string == "2030-01-02T10:00:00Z")
      let counts = ["invited", "going", "maybe", "declined", "waitlisted", "pending"].map { event["counts"][$0].int }
      #expect(counts == [11, 12, 13, 14, 15, 16])
      #expect(try await ana.get("events")["items"][0]["counts"] == event["counts"])
    }
  }

  @Test func `an event is created with all its fields and its guests`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let response = try await ana.send(
        "POST", "events",
        """
        {"title": " Picnic ", "note": "Bring a blanket", "startTime": "2030-05-01T20:00:00+02:00",
         "endTime": "2030-05-01T20:00:00.999Z", "timeZone": "Europe/Berlin",
         "location": {"name": "Tempelhof", "latitude": 52.4731, "longitude": 13.4039}, "capacity": 5, "url": "https://x.org/menu",
         "inviteeIds": ["\(ben.id.uppercased())"]}
        """)
      #expect(response.status == 201, "\(response.body)")
      let event = response.json
      #expect(event["title"].string == "Picnic")
      #expect(event["startTime"].string == "2030-05-01T18:00:00Z")
      #expect(event["endTime"].string == "2030-05-01T20:00:00Z")
      #expect(event["location"]["latitude"] == .number("52.4731"))
      #expect(event["url"].string == "https://x.org/menu")
      #expect(event["capacity"].int == 5)
      #expect(event["status"].string == "scheduled")
      #expect(event["version"].int == 1)
      #expect(event["myStatus"].string == "creator" && event["myRole"].string == "creator")
      #expect(event["creator"]["id"].string == ana.id && event["hosts"] == .array([event["creator"]]))
      #expect(event["myPlusOnes"].int == 0 && event["answerBy"] == .null && event.keys.contains("answerBy"))
      #expect(event["counts"]["invited"].int == 1)
      #expect(event["participants"].array.map { $0["user"]["username"].string } == ["ben"])
      #expect(response.header("ETag") == "\"1\"")
      #expect(response.header("Location") == "/api/v1/events/\(event["id"].string ?? "")")

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
      let response = try await ana.send(
        "POST", "events",
        """
        {"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC",
         "inviteeIds": ["\(ben.id)", "\(cleo.id)", "\(User.ID.new())", "\(ana.id)"]}
        """)
      #expect(response.status == 422)
      #expect(response.badFields == ["inviteeIds[1]", "inviteeIds[2]", "inviteeIds[3]"])
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
    }
  }

  @Test func `any listed version matches, also in the weak form that proxies make of it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (tags, matches) in [
        (#""zz", "2""#, true), (#"W/"2""#, true), (#""1",W/"2" ,"3""#, true), (#"W/"2-gzip""#, true), ("2", true),
        ("*", true), (#""9", *"#, true), (",, \"2\"", true), (#""zz", "1""#, false), (#"W/"1""#, false),
        (#""zz,2,x""#, false),
        (#""zz,"2"""#, false), (#""02""#, false), (#""+2""#, false), (#""*""#, false), ("*2", false),
        ("w/\"2\"", false),
        ("", false), (",", false), ("\"", false), (#""22""#, false), (#""2 ""#, false),
      ] {
        let (id, other) = (
          try await ana.createEvent()["id"].string ?? "", try await ana.createEvent()["id"].string ?? ""
        )
        for event in [id, other] { try await ana.edit(event, #"{"title": "B"}"#) }
        let headers = [("If-Match", tags)]
        let edited = try await ana.send("PATCH", "events/\(id)", #"{"title": "C"}"#, headers: headers)
        #expect(edited.status == (matches ? 200 : 412), "\(tags)")
        let cancelled = try await ana.send("DELETE", "events/\(other)", headers: headers)
        #expect(cancelled.status == (matches ? 200 : 412), "\(tags)")
        if !matches { #expect(edited.problem == "lost-update" && cancelled.problem == "lost-update", "\(tags)") }
      }
      // Two lines of a header are one list.
      let id = try await ana.createEvent()["id"].string ?? ""
      let twice = try await ana.send(
        "PATCH", "events/\(id)", #"{"title": "C"}"#, headers: [("If-Match", "\"zz\""), ("If-Match", "W/\"1\"")])
      #expect(twice.status == 200)
    }
  }

  @Test func `a web address is one that every client can open, and shows its host`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try await ana.createEvent()["id"].string ?? ""
      for url in [
        "https://example.com", "https://xn--mnchen-3ya.de:8443/a/b;c?d=%C3%A9&e#f", "https://x.org?q=1",
        " https://a.org/@b ", "https://A.example:65535/?(a)'b'*,;",
        "https://a.org/" + String(repeating: "b", count: 486),
      ] {
        #expect(
          try await ana.edit(id, #"{"url": "\#(url)"}"#).json["url"].string == String(url.trimmedScalars),
          "\(url)")
      }
      for url in [
        "http://example.com", "HTTPS://example.com", "https://", "https:///a", "example.com", "javascript:alert(1)",
        "https://bank.example@evil.example", "https://bank.example:pin@evil.example/", "https://a.org b",
        "https://a.org/\\u000ab", "https://münchen.de", "https://a.org/é", "https://a.org/%zz", "https://a.org/%4",
        "https://a.org/[b]", "https://a.org#b#c", "https://a.org/\\\"b", "https://a.org/<b>", "https://a.org:65536/",
        "https://a.org:123456/", "https://localhost", "https://foo.1/", "https://1.2.3.999/", "https://127.0.0.1",
        "https://xn--a.org/", "https://xn--.org/", "https://a..org", "https://-a.org", "https://a-.org",
        "https://a.org.", "https://\(String(repeating: "a.", count: 126))org",
        "https://a.org/" + String(repeating: "b", count: 487),
      ] {
        let refused = try await ana.edit(id, #"{"url": "\#(url)"}"#, expecting: 422)
        #expect(refused.badFields == ["url"], "\(url)")
      }
      #expect(try await ana.edit(id, #"{"url": null}"#).json["url"] == .null)
      try await app.takeNotifications()
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
      #expect(try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) } == 1)
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
