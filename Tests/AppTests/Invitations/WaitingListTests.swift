import Postgres
import TestSupport
import Testing

@testable import App

/// Places and the waiting list, with many concurrent guests.
@Suite struct WaitingListTests {
  /// The guests on the waiting list, in order.
  private func line(_ event: String, in app: TestApp) async throws -> [String] {
    let rows = try await app.database.rows(
      """
      SELECT user_id, answered_at FROM invitations
      WHERE event_id = \(Event.ID(event)) AND status = 'waitlisted'
      ORDER BY answered_at
      """)
    let times = Set(try rows.map { try $0["answered_at"] as Timestamp })
    #expect(times.count == rows.count, "two guests have the same place in the line")
    return try rows.map { (try $0["user_id"] as User.ID).description }
  }

  private func answer(_ status: String, by guests: [Phone], to event: String) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for guest in guests { group.addTask { _ = try await guest.answer(status, to: event) } }
      try await group.waitForAll()
    }
  }

  /// The guests who were notified of their own promotion.
  private func promoted(in app: TestApp) async throws -> [String] {
    let received = try await app.takeNotifications().filter { $0.type == "waitlist-promoted" }
    return received.filter { $0.payload["userId"].string == $0.recipient }.map(\.recipient)
  }

  @Test func `400 guests ask at once for 50 places, and waiting guests move up in the order of asking`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(400, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 50)["id"].string ?? ""
      try await app.takeNotifications()
      try await app.withConnections(128) { try await answer("going", by: guests, to: id) }

      let counts = try await ana.get("events/\(id)")["counts"]
      #expect(counts["going"].int == 50 && counts["waitlisted"].int == 350)
      try await app.expectConsistency()
      let waiting = try await line(id, in: app)
      #expect(waiting.count == 350)
      // The host's notices are in the order of the answers. The waiting list begins when all places are given, and each
      // new guest goes to its end.
      let received = try await app.takeNotifications()
      #expect(received.count == 400)
      #expect(received.allSatisfy { $0.type == "invitation-answered" && $0.recipient == ana.id })
      #expect(received.prefix(50).allSatisfy { $0.payload["status"].string == "going" })
      #expect(received.dropFirst(50).allSatisfy { $0.payload["status"].string == "waitlisted" })
      #expect(received.dropFirst(50).compactMap { $0.payload["userId"].string } == waiting)

      try await ana.edit(id, #"{"capacity": 60}"#)
      #expect(Set(try await promoted(in: app)) == Set(waiting[..<10]))
      // 20 guests give up their places. At the same time, 20 waiting guests ask again or leave the line.
      let places = guests.filter { !waiting.contains($0.id) }
      let leaving = guests.filter { waiting[300..<310].contains($0.id) }
      let patient = guests.filter { waiting[340...].contains($0.id) }
      try await app.withConnections(64) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await answer("declined", by: Array(places.prefix(20)), to: id) }
          group.addTask { try await answer("maybe", by: leaving, to: id) }
          group.addTask { try await answer("going", by: patient, to: id) }
          try await group.waitForAll()
        }
      }
      // Guests are promoted in the order of the line.
      #expect(try await promoted(in: app) == Array(waiting[10..<30]))
      #expect(try await line(id, in: app) == Array(waiting[30..<300] + waiting[310...]))
      try await ana.edit(id, #"{"capacity": null}"#)
      #expect(try await promoted(in: app).count == 310)
      #expect(try await ana.get("events/\(id)")["counts"]["waitlisted"].int == 0)
      try await app.expectConsistency()
    }
  }

  @Test func `later requests wait longer even if the clock is set back, and asking again keeps the place`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(5, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
      try await guests[0].answer("going", to: id)
      try await guests[1].answer("going", to: id)
      try await app.database.execute(
        "UPDATE invitations SET answered_at = now() + interval '1 hour' WHERE user_id = \(guests[1].userID)")
      for guest in guests[2...] { try await guest.answer("going", to: id) }
      let ids = guests.map(\.id)
      #expect(try await line(id, in: app) == Array(ids[1...]))
      // Asking again changes nothing. Leaving the line and coming back moves the guest to its end.
      #expect(try await guests[2].stale { try await guests[2].answer("going", to: id) } == [])
      try await guests[3].answer("maybe", to: id)
      #expect(try await guests[3].answer("going", to: id).json["myStatus"].string == "waitlisted")
      #expect(try await line(id, in: app) == [ids[1], ids[2], ids[4], ids[3]])
      try await app.takeNotifications()
      var order: [String] = []
      for place in [0, 1, 2, 4] {
        try await guests[place].answer("declined", to: id)
        order += try await promoted(in: app)
      }
      #expect(order == [ids[1], ids[2], ids[4], ids[3]])
    }
  }

  @Test func `a free place goes to a waiting guest, no matter who gave it up and how`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(8, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 3)["id"].string ?? ""
      for guest in guests.prefix(7) { try await guest.answer("going", to: id) }
      try await app.takeNotifications()
      try await guests[0].answer("declined", to: id)
      #expect(try await promoted(in: app) == [guests[3].id])
      try await guests[1].answer("maybe", to: id)
      #expect(try await promoted(in: app) == [guests[4].id])
      try await ana.withdraw(guests[2], from: id)
      #expect(try await promoted(in: app) == [guests[5].id])
      // A guest who was waiting or had not answered frees no place, and neither does a lower capacity.
      try await ana.withdraw(guests[7], from: id)
      try await ana.edit(id, #"{"capacity": 2}"#)
      #expect(try await ana.get("events/\(id)")["counts"]["going"].int == 3)
      try await guests[3].answer("declined", to: id)
      #expect(try await promoted(in: app) == [])
      try await ana.edit(id, #"{"capacity": 3}"#)
      #expect(try await promoted(in: app) == [guests[6].id])
      try await app.expectConsistency()
    }
  }

  @Test func `the host is notified of a promotion, unless the host caused it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(5, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
      for guest in guests { try await guest.answer("going", to: id) }
      try await app.takeNotifications()
      func received() async throws -> [TestApp.Queued] {
        try await app.takeNotifications().filter { $0.type == "waitlist-promoted" }
      }
      try await guests[0].answer("declined", to: id)
      let both = try await received()
      #expect(both.map(\.recipient) == [guests[1].id, ana.id])
      #expect(both.allSatisfy { $0.payload["userId"].string == guests[1].id })
      #expect(both[0].payload["message"].string == "A place opened up. You are now going to “Picnic”.")
      #expect(both[1].payload["message"].string == "Guest 2 got a free place and is going to “Picnic”.")
      try await ana.withdraw(guests[1], from: id)
      #expect(try await received().map(\.recipient) == [guests[2].id])
      try await ana.edit(id, #"{"capacity": 2}"#)
      #expect(try await received().map(\.recipient) == [guests[3].id])
      try await ana.block(guests[2])
      #expect(try await received().map(\.recipient) == [guests[4].id])
    }
  }

  /// An event can still be changed and answered until it is archived, a day after its end.
  @Test func `an event that is over promotes no guest, unless it is postponed`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(5, around: ana)
      func time(_ hours: Int) -> String { Timestamp.now().adding(seconds: hours * 3600).rfc3339() }
      let times: [(start: Int, end: Int?, isOver: Bool)] = [
        (-3, -1, true), (-3, 1, false),
        // Without an end, the event counts as six hours long.
        (-7, nil, true), (-5, nil, false),
      ]
      for (start, end, isOver) in times {
        let event = try await ana.createEvent(
          inviting: guests, capacity: 2, startTime: time(start), endTime: end.map { time($0) })
        let id = event["id"].string ?? ""
        for guest in guests { try await guest.answer("going", to: id) }
        try await app.takeNotifications()
        try await guests[0].answer("declined", to: id)
        try await ana.withdraw(guests[1], from: id)
        try await ana.edit(id, #"{"capacity": 3}"#)
        let waiting = guests[2...].map(\.id)
        #expect(try await promoted(in: app) == (isOver ? [] : waiting), "\(start)")
        if isOver {
          // New guests do not pass waiting guests, although places are free.
          try await guests[4].answer("going", to: id)
          try await ana.invite([guests[1]], to: id)
          let late = try await guests[1].answer("going", to: id)
          #expect(late.json["myStatus"].string == "waitlisted")
          try await guests[1].answer("declined", to: id)
          try await app.takeNotifications()
        }
        let counts = try await ana.get("events/\(id)")["counts"]
        #expect(counts["going"].int == (isOver ? 0 : 3) && counts["waitlisted"].int == (isOver ? 3 : 0), "\(start)")
        try await ana.edit(id, #"{"startTime": "2030-05-01T18:00:00Z", "endTime": null}"#)
        #expect(Set(try await promoted(in: app)) == (isOver ? Set(waiting) : []), "\(start)")
        #expect(try await ana.get("events/\(id)")["counts"]["going"].int == 3)
        try await app.expectConsistency()
      }
    }
  }

  /// Guests answer at random. At the same time, the host invites, withdraws and changes the capacity.
  @Test func `under concurrent changes the counts stay right and no place is given twice`() async throws {
    try await TestApp.run(isShared: false) { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(12, around: ana)
      for seed: UInt64 in 1...3 {
        let id = try await ana.createEvent(inviting: Array(guests.prefix(8)), capacity: 3)["id"].string ?? ""
        let event = try #require(Event.ID(id))
        try await app.withConnections(24) {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, guest) in guests.enumerated() {
              group.addTask {
                var random = SeededRandom(seed: seed * 1000 + UInt64(place))
                for _ in 0..<15 {
                  let status = ["going", "going", "maybe", "declined"].randomElement(using: &random) ?? "going"
                  let response = try await guest.send(
                    "PUT", "events/\(id)/invitations/me", #"{"status": "\#(status)"}"#)
                  // The guest may not be invited at this moment.
                  #expect([200, 404].contains(response.status), "\(response.body)")
                }
              }
            }
            for hand in 0..<2 {
              group.addTask {
                var random = SeededRandom(seed: seed * 1000 + 500 + UInt64(hand))
                for _ in 0..<15 {
                  let picked = guests.shuffled(using: &random).prefix(2)
                  switch Int.random(in: 0..<3, using: &random) {
                  case 0: try await ana.invite(Array(picked), to: id)
                  case 1: try await ana.withdraw(picked[0], from: id)
                  default: try await ana.edit(id, #"{"capacity": \#(Int.random(in: 2...5, using: &random))}"#)
                  }
                }
              }
            }
            group.addTask {
              for _ in 0..<40 {
                // At every moment, the counts match the invitations, and the guests never exceed the highest capacity.
                let wrong: Int? = try await app.value(
                  """
                  SELECT count(*) FROM events
                  WHERE id = \(event) AND (
                    going_count > 5
                    OR going_count <> (SELECT count(*) FROM invitations WHERE event_id = \(event) AND status = 'going')
                    OR waitlisted_count > 0 AND going_count < capacity
                  )
                  """)
                #expect(wrong == 0)
              }
            }
            try await group.waitForAll()
          }
        }
        try await app.expectCounts()
        _ = try await line(id, in: app)
        #expect(app.dependencies.writeQueue.isIdle)
      }
      let deadlocks: Int? = try await app.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
      #expect(deadlocks == 0)
      try await app.takeNotifications()
    }
  }
}
