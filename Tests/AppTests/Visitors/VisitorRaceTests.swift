import Postgres
import TestSupport
import Testing

@testable import App

/// Invitees and visitors who answer at once.
@Suite struct VisitorRaceTests {
  /// The groups of an event in a state, by the time of their answers.
  private func groups(_ status: String, in app: TestApp) async throws -> [(id: Guest.ID, places: Int)] {
    try await app.database.rows(
      "SELECT id, 1 + plus_ones AS places FROM event_guests WHERE status = \(status) ORDER BY answered_at, id"
    ).map { (try $0["id"], try $0["places"]) }
  }

  @Test func `1,000 invitees and visitors race for 50 places, which are never oversold, and move up in order`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(500, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 50)["id"].string ?? ""
      try await ana.edit(id, #"{"maxPlusOnes": 4}"#)
      let link = try await ana.createLink(to: id, #"{"kind": "answer", "maxPlusOnes": 4}"#)
      let linkID = try #require(ShareLink.ID(link.id))
      try await app.takeNotifications()
      // At no moment are more places given.
      try await app.database.execute("ALTER TABLE events ADD CONSTRAINT places CHECK (going_count <= 50)")
      let statuses = try await app.withConnections(64) {
        try await app.race(1000) { place in
          var random = SeededRandom(seed: UInt64(place))
          let plusOnes = Int.random(in: 0...4, using: &random)
          if place % 2 == 0 {
            return try await guests[place / 2].send(
              "PUT", "events/\(id)/invitations/me", #"{"status": "going", "plusOnes": \#(plusOnes)}"#)
          }
          let form = try #require(app.dependencies.visitorTokens.forms.token(for: linkID))
          return try await app.submit(
            "/e/\(link.token)", ["form": form, "name": "Z\(place)", "answer": "going", "plusOnes": "\(plusOnes)"])
        }
      }
      #expect(statuses == [200: 500, 303: 500])
      try await app.database.execute("ALTER TABLE events DROP CONSTRAINT places")
      try await app.expectConsistency()
      let going = try await groups("going", in: app)
      let line = try await groups("waitlisted", in: app)
      #expect(going.count + line.count == 1000 && going.map(\.places).reduce(0, +) <= 50)
      // First come, first served: all who are going answered before all who wait.
      let isFair: Bool? = try await app.value(
        """
        SELECT max(answered_at) FILTER (WHERE status = 'going') < min(answered_at) FILTER (WHERE status = 'waitlisted')
        FROM event_guests
        """)
      #expect(isFair == true)
      let (visitors, times): (Int?, Int?) = (
        try await app.value("SELECT count(*) FROM visitors WHERE status = 'waitlisted'"),
        try await app.value("SELECT count(DISTINCT answered_at) FROM event_guests WHERE status = 'waitlisted'")
      )
      #expect((visitors ?? 0) > 300 && times == line.count)
      // Places become free in steps. Each time, the front of the line moves up, as far as it fits.
      var (held, capacity, moved) = (going.map(\.places).reduce(0, +), 50, 0)
      while moved < line.count {
        capacity += 173
        try await ana.edit(id, #"{"capacity": \#(capacity)}"#)
        while moved < line.count, held + line[moved].places <= capacity {
          held += line[moved].places
          moved += 1
        }
        let waiting = try await groups("waitlisted", in: app).map(\.id)
        #expect(waiting == line.dropFirst(moved).map(\.id), "\(moved)")
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `visitors who come, change, leave and are removed at once keep the counts right`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(6, around: ana)
      let id = try await ana.createEvent(inviting: guests, capacity: 5)["id"].string ?? ""
      try await ana.edit(id, #"{"maxPlusOnes": 2}"#)
      let link = try await ana.createLink(to: id, #"{"kind": "answer", "maxPlusOnes": 2, "maxGuests": 30}"#)
      let linkID = try #require(ShareLink.ID(link.id))
      try await app.withConnections(24) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<12 {
            group.addTask {
              var random = SeededRandom(seed: UInt64(number))
              for _ in 0..<3 {
                let form = try #require(app.dependencies.visitorTokens.forms.token(for: linkID))
                let plusOnes = Int.random(in: 0...2, using: &random)
                let came = try await app.submit(
                  "/e/\(link.token)", ["form": form, "name": "Z", "answer": "going", "plusOnes": "\(plusOnes)"])
                // Of 36, some find the link full.
                guard came.status == 303 else { continue }
                let visit = Visit(app: app, token: try app.visitorToken(in: came))
                for _ in 0..<3 {
                  let status = ["going", "maybe", "declined"].randomElement(using: &random) ?? "going"
                  let response = try await app.submit(
                    visit.path,
                    ["do": "answer", "answer": status, "plusOnes": "\(Int.random(in: 0...2, using: &random))"])
                  #expect([303, 404, 422].contains(response.status), "\(response.body)")
                }
                if Bool.random(using: &random) {
                  _ = try await app.submit(visit.path, ["do": "erase"])
                } else if Bool.random(using: &random) {
                  _ = try await ana.send("DELETE", "events/\(id)/invitations/\(visit.id)")
                }
              }
            }
          }
          for guest in guests {
            group.addTask {
              for status in ["going", "maybe", "going", "declined", "going"] {
                _ = try await guest.send("PUT", "events/\(id)/invitations/me", #"{"status": "\#(status)"}"#)
              }
            }
          }
          try await group.waitForAll()
        }
      }
      #expect(try await app.value("SELECT joined_count FROM share_links") == 30)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
