import Foundation
import Postgres
import Testing

@testable import App

@Suite struct SeedHostTests {
  private func login(_ app: TestApp, _ username: String) async throws -> Phone {
    try Phone(app, username, try await app.logIn(username, DemoSeed.password))
  }

  @Test func `an event has a co-host, plus-ones, a deadline, and a share link for others to join`() async throws {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies, now: Date().addingTimeInterval(-5 * 86_400))
      let (ana, emre) = (try await login(app, "ana"), try await login(app, "emre"))
      let path = "events/01900000-0000-7000-8002-000000000010"
      let party = try await ana.get(path)
      #expect(party["hosts"].array.map { $0["username"].string } == ["ben", "ana"] && party["myRole"].string == "host")
      #expect(
        party["maxPlusOnes"].int == 3 && party["counts"]["going"].int == 5 && party["counts"]["pending"].int == 1
          && party["counts"]["maybe"].int == 2)
      let (start, deadline) = (party["startTime"].string ?? "", party["answerBy"].string ?? "")
      #expect(Timestamp.now().rfc3339() < deadline && deadline < start)
      // Co-hosts see the addresses of their own links only.
      #expect(try await ana.get(path + "/links")["items"][0]["url"] == .null)
      let link = try await login(app, "ben").get(path + "/links")["items"][0]
      #expect(link["id"].string == "01900000-0000-7000-8004-000000000001" && link["joined"].int == 2)
      let token = try #require(link["url"].string?.split(separator: "/").last)
      #expect(try await emre.send("POST", "links/\(token)/join").status == 200)
      #expect(try await emre.get(path)["myStatus"].string == "pending")
      // Planting again moves the deadline with the event, and restores nothing that hosts have ended.
      #expect(try await ana.send("DELETE", path + "/links/01900000-0000-7000-8004-000000000001").status == 204)
      #expect(try await ana.send("DELETE", path + "/hosts/\(try seed.person("ana").user)").status == 204)
      try await seed.plant(in: app.dependencies)
      let moved = try await emre.get(path)
      #expect(moved["hosts"].array.count == 1)
      func days(_ before: String, _ after: JSON) throws -> Int64 {
        let times = [try #require(Timestamp(rfc3339: before)), try #require(Timestamp(rfc3339: after.string ?? ""))]
        return (times[1].microseconds - times[0].microseconds + 43_200_000_000) / 86_400_000_000
      }
      #expect(try days(start, moved["startTime"]) == 5 && days(deadline, moved["answerBy"]) == 5)
      #expect(try await app.value("SELECT count(*) FROM share_links") == 0)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }
}
