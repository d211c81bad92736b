import Postgres
import Testing

@testable import App

/// Guests who bring people along, and the places of their parties.
@Suite struct PlusOneTests {
  private func party(_ host: Phone, _ guests: [Phone], capacity: Int?, maxPlusOnes: Int = 10) async throws -> String {
    let id = try await host.createEvent(inviting: guests, capacity: capacity)["id"].string ?? ""
    try await host.edit(id, #"{"maxPlusOnes": \#(maxPlusOnes)}"#)
    return id
  }

  private func counts(_ id: String, _ phone: Phone) async throws -> [Int?] {
    let counts = try await phone.get("events/\(id)")["counts"]
    return ["invited", "going", "maybe", "declined", "waitlisted"].map { counts[$0].int }
  }

  private func state(_ response: APIResponse) -> String {
    "\(response.json["myStatus"].string ?? "-") \(response.json["myPlusOnes"].int ?? -1)"
  }

  /// The guests who were notified of their own promotion, in order.
  private func promoted(in app: TestApp) async throws -> [String] {
    try await app.takeNotifications().filter {
      $0.type == "waitlist-promoted" && $0.payload["userId"].string == $0.recipient
    }.map(\.recipient)
  }

  @Test func `an event says how many people each guest may bring, and lowering it changes no answer`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let made = try await ana.send(
        "POST", "events",
        """
        {"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "maxPlusOnes": 3,
         "inviteeIds": ["\(ben.id)"]}
        """)
      #expect(made.status == 201 && made.json["maxPlusOnes"].int == 3, "\(made.body)")
      let id = made.json["id"].string ?? ""
      #expect(try await ana.createEvent()["maxPlusOnes"].int == 0)
      for wrong in ["-1", "11", "1.5", "null"] {
        let refused = try await ana.edit(id, #"{"maxPlusOnes": \#(wrong)}"#, expecting: 422)
        #expect(refused.badFields == ["maxPlusOnes"], "\(refused.body)")
      }
      #expect(state(try await ben.answer("going", plusOnes: 3, to: id)) == "going 3")
      let over = try await ben.answer("going", plusOnes: 4, to: id, expecting: 422)
      #expect(over.badFields == ["plusOnes"] && over.json["errors"][0]["code"].string == "out-of-range")
      try await app.takeNotifications()
      let edited = try await ana.edit(id, #"{"maxPlusOnes": 1}"#)
      #expect(edited.json["maxPlusOnes"].int == 1)
      #expect(try await counts(id, ana) == [0, 4, 0, 0, 0])
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["event-updated"] && received.map(\.recipient) == [ben.id])
      #expect(received[0].payload["message"].string == "“Picnic” has changed: the number of plus-ones.")
      // The guest keeps their number, even by sending it. More than that must be within the new maximum.
      #expect(state(try await ben.answer("maybe", to: id)) == "maybe 3")
      #expect(state(try await ben.answer("maybe", plusOnes: 3, to: id)) == "maybe 3")
      #expect(try await ben.answer("maybe", plusOnes: 4, to: id, expecting: 422).badFields == ["plusOnes"])
      #expect(state(try await ben.answer("declined", plusOnes: 3, to: id)) == "declined 3")
      #expect(try await ben.answer("going", plusOnes: 3, to: id, expecting: 422).badFields == ["plusOnes"])
      #expect(try await counts(id, ana) == [0, 0, 0, 4, 0])
      // A guest who comes back brings as many as are allowed now.
      #expect(state(try await ben.answer("going", to: id)) == "going 1")
      #expect(try await counts(id, ana) == [0, 2, 0, 0, 0])
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `plus-ones show to the guest, in the guest list and in notifications`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await party(ana, [ben], capacity: nil)
      try await app.takeNotifications()
      for (status, plusOnes, message) in [
        ("going", 1, "Ben is going to “Picnic”, with 1 other."),
        ("going", 2, "Ben is going to “Picnic”, with 2 others."),
        ("maybe", 2, "Ben may come to “Picnic”, with 2 others."), ("maybe", 0, "Ben may come to “Picnic”."),
        ("going", 1, "Ben is going to “Picnic”, with 1 other."), ("declined", 1, "Ben cannot come to “Picnic”."),
      ] {
        try await ben.editProfile(#"{"displayName": "Ben"}"#)
        #expect(state(try await ben.answer(status, plusOnes: plusOnes, to: id)) == "\(status) \(plusOnes)")
        let received = try await app.takeNotifications()
        #expect(
          received.map(\.recipient) == [ana.id] && received[0].payload["message"].string == message, "\(received)")
        let shown = status == "declined" || plusOnes == 0 ? nil : plusOnes
        #expect(received[0].payload["plusOnes"].int == shown)
        let guest = try await ana.get("events/\(id)/invitations")["items"][0]
        #expect(guest["plusOnes"].int == plusOnes && guest["status"].string == status)
        let invitation = try await ben.get("invitations")["items"][0]
        #expect(invitation["event"]["myPlusOnes"].int == plusOnes)
        #expect(try await ben.get("events")["items"][0]["myPlusOnes"].int == plusOnes)
        let stale = try await ben.stale { try await ben.answer(status, plusOnes: plusOnes, to: id) }
        #expect(stale == [], "the same answer changes nothing")
      }
    }
  }

  @Test func `a party goes together or waits together, and no one overtakes it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(6, around: ana)
      let id = try await party(ana, guests, capacity: 5)
      #expect(state(try await guests[0].answer("going", plusOnes: 2, to: id)) == "going 2")
      // Two places are free, and three people come. The next guest would fit, and waits.
      #expect(state(try await guests[1].answer("going", plusOnes: 2, to: id)) == "waitlisted 2")
      #expect(state(try await guests[2].answer("going", to: id)) == "waitlisted 0")
      #expect(state(try await guests[3].answer("going", plusOnes: 1, to: id)) == "waitlisted 1")
      #expect(try await counts(id, ana) == [2, 3, 0, 0, 6])
      // A raise needs a place that no one waits for.
      let stale = try await ana.stale {
        let refused = try await guests[0].answer("going", plusOnes: 3, to: id, expecting: 409)
        #expect(refused.problem == "no-room")
      }
      #expect(stale == [])
      #expect(try await counts(id, ana) == [2, 3, 0, 0, 6])
      try await app.takeNotifications()
      // A party that waits may change: it keeps its place in the line, and goes as soon as it fits.
      #expect(state(try await guests[1].answer("going", plusOnes: 3, to: id)) == "waitlisted 3")
      #expect(try await promoted(in: app) == [])
      #expect(state(try await guests[1].answer("going", plusOnes: 0, to: id)) == "going 0")
      // The guest sees it in the response, and the next guest also fits.
      #expect(try await promoted(in: app) == [guests[2].id])
      #expect(try await counts(id, ana) == [2, 5, 0, 0, 2])
      // One place is not enough for two people.
      #expect(state(try await guests[2].answer("declined", to: id)) == "declined 0")
      #expect(try await promoted(in: app) == [])
      #expect(state(try await guests[0].answer("going", plusOnes: 1, to: id)) == "going 1")
      #expect(try await promoted(in: app) == [guests[3].id])
      #expect(try await counts(id, ana) == [2, 5, 0, 1, 0])
      try await app.expectConsistency()
    }
  }

  @Test func `places go to the next parties when a party that did not fit leaves, however it does`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(4, around: ana)
      let (large, small) = (guests[1], guests[2])
      for way in ["declined", "maybe", "withdrawn", "blocked"] {
        let id = try await party(ana, guests, capacity: 2)
        try await guests[0].answer("going", to: id)
        try await large.answer("going", plusOnes: 1, to: id)
        try await small.answer("going", to: id)
        try await app.takeNotifications()
        switch way {
        case "withdrawn": try await ana.withdraw(large, from: id)
        case "blocked": try await ana.block(large)
        default: try await large.answer(way, to: id)
        }
        #expect(try await promoted(in: app) == [small.id], "\(way)")
        try await app.expectConsistency()
      }
    }
  }

  @Test func `a party larger than the event is refused, and one that has become larger holds no one up`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(4, around: ana)
      let id = try await party(ana, guests, capacity: 3)
      #expect(try await guests[0].answer("going", plusOnes: 3, to: id, expecting: 409).problem == "no-room")
      #expect(state(try await guests[0].answer("going", plusOnes: 1, to: id)) == "going 1")
      #expect(state(try await guests[1].answer("going", plusOnes: 2, to: id)) == "waitlisted 2")
      // A waiting party cannot grow beyond the event either.
      #expect(try await guests[1].answer("going", plusOnes: 3, to: id, expecting: 409).problem == "no-room")
      #expect(state(try await guests[2].answer("going", to: id)) == "waitlisted 0")
      try await app.takeNotifications()
      // The party of three can no longer go.
      try await ana.edit(id, #"{"capacity": 2}"#)
      #expect(state(try await guests[1].answer("going", plusOnes: 2, to: id)) == "waitlisted 2")
      try await guests[0].answer("going", plusOnes: 0, to: id)
      #expect(try await promoted(in: app) == [guests[2].id])
      try await guests[2].answer("declined", to: id)
      // No one waits in front of this guest.
      #expect(state(try await guests[3].answer("going", to: id)) == "going 0")
      #expect(try await counts(id, ana) == [0, 2, 0, 1, 3])
      // As a smaller party, it waits at its old place, and then goes.
      try await guests[3].answer("maybe", to: id)
      try await app.takeNotifications()
      #expect(state(try await guests[1].answer("going", plusOnes: 0, to: id)) == "going 0")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a large party is promoted as a whole, and hosts and guests learn how many come`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(3, around: ana)
      let id = try await party(ana, guests, capacity: 3)
      try await guests[0].answer("going", plusOnes: 2, to: id)
      try await guests[1].answer("going", plusOnes: 2, to: id)
      try await guests[2].answer("going", to: id)
      try await app.takeNotifications()
      try await guests[0].answer("declined", to: id)
      let received = try await app.takeNotifications().filter { $0.type == "waitlist-promoted" }
      #expect(
        received.map(\.recipient) == [guests[1].id, ana.id] && received.allSatisfy { $0.payload["plusOnes"].int == 2 })
      let sentences = received.map { $0.payload["message"].string }
      #expect(sentences[0] == "A place opened up. You are now going to “Picnic”, with 2 others.")
      #expect(sentences[1] == "Guest 2 got a free place and is going to “Picnic”, with 2 others.")
      // Raising the capacity promotes in order, up to the first that does not fit.
      try await guests[0].answer("going", plusOnes: 1, to: id)
      try await app.takeNotifications()
      try await ana.edit(id, #"{"capacity": 5}"#)
      #expect(try await promoted(in: app) == [guests[2].id])
      try await ana.edit(id, #"{"capacity": null}"#)
      #expect(try await promoted(in: app) == [guests[0].id])
      #expect(try await counts(id, ana) == [0, 6, 0, 0, 0])
      try await app.expectConsistency()
    }
  }

  @Test func `a long line moves up by as many places as are free`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(400, around: ana)
      let id = try await party(ana, guests, capacity: 2)
      let event = try #require(Event.ID(id))
      try await guests[0].answer("going", plusOnes: 1, to: id)
      try await app.database.execute(
        """
        UPDATE invitations SET status = 'waitlisted', answered_at = clock_timestamp()
        WHERE event_id = \(event) AND status = 'invited'
        """)
      try await app.database.execute(
        "UPDATE events SET waitlisted_count = invited_count, invited_count = 0 WHERE id = \(event)")
      try await app.takeNotifications()
      try await guests[0].answer("going", plusOnes: 0, to: id)
      #expect(try await promoted(in: app).count == 1)
      try await ana.edit(id, #"{"capacity": null}"#)
      #expect(try await promoted(in: app).count == 398)
      #expect(try await counts(id, ana) == [0, 400, 0, 0, 0])
      try await app.expectConsistency()
    }
  }
}
