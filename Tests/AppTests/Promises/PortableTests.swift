import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The service with `MUSTER_ENGINE=distributed`, on an engine that lacks what ``Emulation`` takes away.
@Suite struct PortableTests {
  private func run(_ body: @escaping @Sendable (TestApp) async throws -> Void) async throws {
    try await TestApp.run(
      ["MUSTER_ENGINE": "distributed", "MUSTER_THROTTLING": "off"], queuesWrites: false, pastPooler: true,
      prepare: { try await Emulation.begin(in: $0) }, body)
  }

  @Test func `places, keys and limits hold under concurrent requests and injected conflicts`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      var friends: [Phone] = []
      for number in 0..<6 {
        friends.append(try await app.signUp("guest\(number)"))
        try await app.befriend(ana, friends[number])
      }
      let guests = friends
      // A key has one effect, and each request with it gets the same event.
      let body = #"{"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "capacity": 3}"#
      let responses = try await withThrowingTaskGroup(of: APIResponse.self, returning: [APIResponse].self) {
        group in
        for _ in 0..<6 {
          group.addTask { try await ana.send("POST", "events", body, headers: [("Idempotency-Key", "a-key")]) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(responses.map(\.status)) == [201] && Set(responses.map { $0.json["id"].string }).count == 1)
      #expect(try await app.value("SELECT count(*) FROM events") == 1)
      // No more guests than places.
      let event = try #require(responses[0].json["id"].string)
      let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
      #expect(try await ana.send("POST", "events/\(event)/invitations", #"{"userIds": [\#(ids)]}"#).status == 200)
      let answered = try await app.race(6) {
        try await guests[$0].send("PUT", "events/\(event)/invitations/me", #"{"status": "going"}"#)
      }
      #expect(answered == [200: 6])
      let counts = try await ana.get("events/\(event)")["counts"]
      #expect(counts["going"].int == 3 && counts["waitlisted"].int == 3)
      // No more sessions than allowed.
      try await app.database.execute(
        """
        INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
        SELECT uuid_v7(), \(ana.userID), now() - interval '1 hour', 'k', now() - interval '1 day'
        FROM generate_series(1, 48)
        """)
      #expect(try await app.race(6) { _ in try await app.logIn("ana", ana.password) } == [200: 6])
      let open: Int? = try await app.value(
        "SELECT count(*) FROM sessions WHERE user_id = \(ana.userID) AND ended_at IS NULL")
      #expect(open == Session.maximumCount)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test func `a session that has ended stops within moments`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      let other = try await ana.signInAgain(device: "other")
      #expect(try await other.send("POST", "auth/logout").status == 204)
      try await eventually { try await other.send("GET", "users/me").status == 401 }
      #expect(try await ana.send("GET", "users/me").status == 200)
    }
  }

  @Test func `a worker files notices without listening`() async throws {
    try await run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let worker = try await Program(
        Program.path("muster"), ["worker"],
        environment: Muster.environment(app.databaseURL).merging(["MUSTER_ENGINE": "distributed"]) { $1 }, in: "/tmp")
      defer { worker.signal(SIGKILL) }
      try await worker.waitForOutput(#""message":"started""#)
      try await ana.sendFriendRequest(to: ben)
      try await eventually { try await ben.get("notifications")["items"].array.count == 1 }
      let listening: Int? = try await app.value(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%'")
      #expect(listening == 0)
      worker.signal(SIGTERM)
      #expect(try await worker.exitStatus() == 0)
    }
  }
}
