import Postgres
import Testing

@testable import App

@Suite struct EventCancellingTests {
  @Test func `cancelling notifies guests who have not declined, and all guests still read the event`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(3, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      try await guests[1].answer("going", to: id)
      try await guests[2].answer("declined", to: id)
      try await app.takeNotifications()
      let cancelled = try await app.expectStale(of: ana, and: guests, notified: [guests[0], guests[1]]) {
        try await ana.cancelEvent(id, headers: [("If-Match", "\"1\"")])
      }
      #expect(cancelled.json["status"].string == "cancelled")
      #expect(cancelled.json["version"].int == 2)
      #expect(cancelled.json["myStatus"].string == "creator")
      #expect(cancelled.header("ETag") == "\"2\"")
      let received = try await app.takeNotifications()
      #expect(received.allSatisfy { $0.type == "event-cancelled" })
      #expect(Set(received.map(\.recipient)) == [guests[0].id, guests[1].id])
      #expect(received.count == 2)
      #expect(received[0].payload.keys == ["type", "message", "locKey", "locArgs", "eventId", "title"])
      #expect(received[0].payload["eventId"].string == id)
      for guest in guests {
        #expect(try await guest.get("events/\(id)")["status"].string == "cancelled")
        #expect(try await guest.get("events")["items"][0]["status"].string == "cancelled")
        #expect(try await guest.get("invitations")["items"][0]["event"]["status"].string == "cancelled")
      }
      try await app.expectConsistency()
    }
  }

  @Test func `cancelling again gets the same response and changes nothing`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let first = try await ana.cancelEvent(id, headers: [("If-Match", "\"1\"")])
      try await app.takeNotifications()
      let stale = try await ben.stale {
        // A phone that got no response sends its request again.
        for headers in [[("If-Match", "\"1\"")], [("If-Match", "\"2\"")], []] {
          let again = try await ana.cancelEvent(id, headers: headers)
          #expect(again.json == first.json)
          #expect(again.header("ETag") == "\"2\"")
        }
      }
      #expect(stale == [])
      try await app.database.execute("UPDATE events SET archived_at = now()")
      #expect(try await ana.cancelEvent(id).json == first.json)
    }
  }

  @Test func `a cancelled event can no longer change`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(4, around: ana)
      let id = try await ana.createEvent(inviting: Array(guests.prefix(3)), capacity: 1)["id"].string ?? ""
      for guest in guests.prefix(2) { try await guest.answer("going", to: id) }
      try await ana.cancelEvent(id)
      try await app.takeNotifications()
      let before = try await ana.get("events/\(id)")
      let responses = [
        try await ana.edit(id, #"{"title": "On again", "capacity": 5}"#, expecting: 409),
        try await guests[0].answer("declined", to: id, expecting: 409),
        try await guests[2].answer("going", to: id, expecting: 409),
        try await ana.invite([guests[3]], to: id, expecting: 409),
        try await ana.withdraw(guests[0], from: id, expecting: 409),
      ]
      #expect(responses.allSatisfy { $0.problem == "event-cancelled" })
      // Withdrawing a user who is not invited changes nothing.
      try await ana.withdraw(guests[3], from: id)
      #expect(try await ana.get("events/\(id)") == before)
      #expect(before["counts"]["waitlisted"].int == 1)
    }
  }

  @Test func `an event is cancelled only with the current version and while it is live`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await ana.edit(id, #"{"title": "B"}"#)
      try await app.takeNotifications()
      for tag in ["\"1\"", "\"3\"", "W/\"3\"", "x"] {
        let lost = try await ana.cancelEvent(id, headers: [("If-Match", tag)], expecting: 412)
        #expect(lost.problem == "lost-update")
      }
      #expect(try await ben.get("events/\(id)")["status"].string == "scheduled")
      try await app.database.execute("UPDATE events SET archived_at = now()")
      #expect(try await ana.cancelEvent(id, expecting: 409).problem == "event-archived")
    }
  }

  @Test func `if one version is cancelled and edited at once, only one succeeds`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for _ in 0..<20 {
        let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
        try await app.takeNotifications()
        let version = [("If-Match", "\"1\"")]
        async let one = ana.send("DELETE", "events/\(id)", headers: version)
        async let other = ana.send("PATCH", "events/\(id)", #"{"title": "Moved"}"#, headers: version)
        let (cancelled, edited) = try await (one, other)
        let event = try await ben.get("events/\(id)")
        #expect(event["version"].int == 2)
        if cancelled.status == 200 {
          #expect(edited.problem == "event-cancelled")
          #expect(event["title"].string == "Picnic" && event["status"].string == "cancelled")
        } else {
          #expect(cancelled.problem == "lost-update" && edited.status == 200)
          #expect(event["title"].string == "Moved" && event["status"].string == "scheduled")
        }
        let received = try await app.takeNotifications().map(\.type)
        #expect(received == [cancelled.status == 200 ? "event-cancelled" : "event-updated"])
      }
    }
  }

  @Test func `an answer that races with cancelling is either counted or refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(20, around: ana)
      for round in 0..<5 {
        let id = try await ana.createEvent(inviting: guests, capacity: 4)["id"].string ?? ""
        try await app.takeNotifications()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
          for (place, guest) in guests.enumerated() {
            if place == 3 * round { group.addTask { try await ana.cancelEvent(id).status - 200 } }
            group.addTask {
              try await guest.send("PUT", "events/\(id)/invitations/me", #"{"status": "going"}"#).status
            }
          }
          return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(statuses.allSatisfy { [0, 200, 409].contains($0) })
        let answered = statuses.count { $0 == 200 }
        let counts = try await ana.get("events/\(id)")["counts"]
        #expect((counts["going"].int ?? 0) + (counts["waitlisted"].int ?? 0) == answered)
        let received = try await app.takeNotifications().map(\.type)
        let cancelling = Array(repeating: "event-cancelled", count: guests.count)
        #expect(received == Array(repeating: "invitation-answered", count: answered) + cancelling)
        try await app.expectConsistency()
      }
    }
  }
}
