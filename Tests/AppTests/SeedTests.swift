import Foundation
import Postgres
import Testing

@testable import App

@Suite struct SeedTests {
  private func login(_ app: TestApp, _ username: String) async throws -> Phone {
    let answer = try await app.send(
      "POST", "auth/login", body: #"{"login": "\#(username)", "password": "\#(DemoSeed.password)"}"#)
    #expect(answer.status == 200, "\(answer.body)")
    return try Phone(app, username, answer)
  }

  @Test func `the demo has past, running and coming events, answers of every kind, and requests both ways`()
    async throws
  {
    try await TestApp.run { app in
      try await DemoSeed().plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      #expect(try await ana.get("friends")["items"].array.count == 5)
      #expect(try await ana.get("friend-requests?direction=incoming")["items"].array.count == 2)
      #expect(try await ana.get("friend-requests?direction=sent")["items"].array.count == 2)
      #expect(try await ana.get("events?when=past")["items"].array.count == 2)
      let events = try await ana.get("events")["items"].array
      let now = Timestamp.now().rfc3339()
      let running = events.filter {
        ($0["startTime"].string ?? "") <= now && now <= ($0["endTime"].string ?? "")
      }
      // It lasts until a minute before midnight.
      if !now.contains("T23:59") { #expect(running.map { $0["title"].string } == ["Open studio all day"]) }
      #expect(events.contains { $0["status"].string == "cancelled" })
      #expect(Set(events.compactMap { $0["myStatus"].string }) == ["creator", "going", "invited", "maybe"])
      let states: Int? = try await app.value("SELECT count(DISTINCT status) FROM invitations")
      #expect(states == Invitation.Status.allCases.count)
      // Every event's counts are what counting gives.
      let wrong: Int? = try await app.value(
        """
        SELECT count(*) FROM events AS e
        WHERE (invited_count, going_count, maybe_count, declined_count, waitlisted_count) <> (
          SELECT count(*) FILTER (WHERE status = 'invited'), count(*) FILTER (WHERE status = 'going'),
            count(*) FILTER (WHERE status = 'maybe'), count(*) FILTER (WHERE status = 'declined'),
            count(*) FILTER (WHERE status = 'waitlisted')
          FROM invitations WHERE event_id = e.id)
        """)
      #expect(wrong == 0)
    }
  }

  @Test func `planting again keeps what people did, and moves the dates to today`() async throws {
    try await TestApp.run { app in
      let monthAgo = Date().addingTimeInterval(-30 * 86_400)
      try await DemoSeed().plant(in: app.dependencies, now: monthAgo)
      let ana = try await login(app, "ana")
      let invited = try await ana.get("invitations?status=invited")["items"][0]["event"]["id"].string ?? ""
      try await ana.answer("going", to: invited)
      try await app.takeNotifications()
      #expect(try await ana.stale { try await DemoSeed().plant(in: app.dependencies) } == Set(Phone.collections.keys))
      let event = try await ana.get("events/\(invited)")
      #expect(event["myStatus"].string == "going")
      #expect(event["startTime"].string ?? "" > Timestamp.now().rfc3339())
      #expect(try await app.value("SELECT count(*) FROM users") == 10)
      let session = try await ana.refresh()
      #expect(session.status == 200)
    }
  }

  @Test func `a name of the cast that somebody else has is said`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("cleo")
      let error = await #expect(throws: AppError.self) { try await DemoSeed().plant(in: app.dependencies) }
      #expect(error?.message.contains("cleo") == true)
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
    }
  }
}
