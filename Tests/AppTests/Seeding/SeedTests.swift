import Foundation
import Postgres
import Testing

@testable import App

@Suite struct SeedTests {
  private func login(_ app: TestApp, _ username: String) async throws -> Phone {
    try Phone(app, username, try await app.logIn(username, DemoSeed.password))
  }

  @Test func `the demo has past, running and upcoming events, answers of every kind, and requests in both directions`()
    async throws
  {
    try await TestApp.run { app in
      try await DemoSeed().plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      #expect(try await ana.get("friends")["items"].array.count == 5)
      #expect(try await ana.get("friend-requests?direction=incoming")["items"].array.count == 2)
      #expect(try await ana.get("friend-requests?direction=sent")["items"].array.count == 2)
      #expect(try await ana.get("events?when=past")["items"].array.count == 3)
      let events = try await ana.get("events")["items"].array
      #expect(events.count == 13)
      let now = Timestamp.now().rfc3339()
      let running = events.filter {
        ($0["startTime"].string ?? "") <= now && now <= ($0["endTime"].string ?? "")
      }
      // It lasts until a minute before midnight.
      if !now.contains("T23:59") { #expect(running.contains { $0["title"].string == "Open studio all day" }) }
      #expect(events.contains { $0["status"].string == "cancelled" })
      #expect(events.contains { $0["endTime"] == .null })
      #expect(events.contains { $0["location"] == .null && $0["note"] == .null })
      #expect(events.contains { ($0["title"].string ?? "").count > 170 && ($0["note"].string ?? "").count > 1500 })
      #expect(Set(events.compactMap { $0["timeZone"].string }).count >= 6)
      #expect(
        Set(events.compactMap { $0["myStatus"].string })
          == ["creator", "host", "going", "invited", "maybe", "declined", "waitlisted"])
      let states: Int? = try await app.value("SELECT count(DISTINCT status) FROM invitations")
      // No demo link asks for approval.
      #expect(states == Invitation.Status.allCases.count - 1)
      try await app.expectCounts()
      let crowded: Int? = try await app.value("SELECT count(*) FROM events WHERE going_count > capacity")
      #expect(crowded == 0)
    }
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

  @Test func `guests are friends of the creator, and no one has answered in the future`() async throws {
    try await TestApp.run { app in
      try await DemoSeed().plant(in: app.dependencies)
      let strangers: Int? = try await app.value(
        """
        SELECT count(*) FROM invitations AS i
        JOIN events AS e ON e.id = i.event_id
        WHERE NOT EXISTS (SELECT 1 FROM friends WHERE user_id = e.creator_id AND friend_id = i.user_id)
        """)
      #expect(strangers == 0)
      let early: Int? = try await app.value(
        """
        SELECT count(*) FROM invitations AS i
        JOIN events AS e ON e.id = i.event_id
        WHERE i.invited_at > now() OR i.answered_at > now() OR i.answered_at < i.invited_at OR i.invited_at > e.start_time
        """)
      #expect(early == 0)
    }
  }

  @Test func `every demo user has a picture in all sizes`() async throws {
    // Planting runs no other program.
    try await TestApp.run(decoderPath: "/nonexistent") { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      var urls: Set<String> = []
      for person in seed.people where person.username != "kai" {
        let url = try #require(try await ana.get("users/\(person.user)")["pictureUrl"].string)
        urls.insert(url)
        let path = try #require(URL(string: url)?.path)
        for size in ["", "?size=192", "?size=768", "?size=2048"] {
          let picture = try await app.send("GET", path + size)
          #expect(
            picture.status == 200 && picture.header("Content-Type") == "image/jpeg", "\(person.username)\(size)")
        }
      }
      #expect(urls.count == 11)
      for person in seed.people {
        for (ending, side) in [("-192.jpg", 192), (".jpg", 256)] {
          let text = try #require(Resources.seedPictures[person.username + ending])
          let bytes = Array(try #require(Data(base64Encoded: text)))
          #expect(PictureFormat(of: bytes) == .jpeg)
          let frame = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xff, 0xc0, 0, 17, 8]) })
          let sides = [5, 7].map { Int(bytes[frame + $0]) << 8 | Int(bytes[frame + $0 + 1]) }
          #expect(sides == [side, side], "\(person.username)\(ending)")
        }
      }
    }
  }

  @Test func `ana's inbox has every type, and she has blocked a user`() async throws {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      let inbox = try await ana.get("notifications")
      let items = inbox["items"].array
      func values(of member: String) -> Set<String> { Set(items.compactMap { $0[member].string }) }
      #expect(values(of: "type") == Set(Notice.Kind.allCases.map(\.rawValue)))
      #expect(values(of: "locKey").isSuperset(of: ["waitlist-promoted", "waitlist-promoted.host"]))
      #expect(inbox["unread"].int == seed.inbox.count { $0.read != true })
      #expect(items.allSatisfy { ($0["message"].string ?? "").isEmpty == false })
      let times = items.compactMap { $0["createdAt"].string }
      #expect(times == times.sorted(by: >) && (times.first ?? "") <= Timestamp.now().rfc3339())
      #expect(try await ana.get("blocks")["items"].array.map { $0["user"]["username"].string } == ["kai"])
      let found = try await ana.get("users?query=kai")["items"].array
      #expect(found.allSatisfy { $0["username"].string != "kai" })
      #expect(
        try await ana.get("users/recommended")["items"].array.map { $0["user"]["username"].string } == ["lina"])
      try await app.expectNothingCrossesABlock()
    }
  }

  @Test func `planting again restores no block, picture or notification`() async throws {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      let kai = try #require(try await ana.get("blocks")["items"][0]["user"]["id"].string)
      #expect(try await ana.send("DELETE", "blocks/\(kai)").status == 204)
      #expect(try await ana.send("DELETE", "users/me/picture").status == 204)
      #expect(try await ana.send("POST", "notifications/read", #"{"all": true}"#).status == 200)
      try await seed.plant(in: app.dependencies)
      #expect(try await ana.get("blocks")["items"].array.isEmpty)
      #expect(try await ana.get("users/me")["pictureUrl"] == .null)
      let inbox = try await ana.get("notifications")
      #expect(inbox["items"].array.count == seed.inbox.count && inbox["unread"].int == 0)
    }
  }

  @Test func `planting again keeps the users' changes, and moves the dates to today`() async throws {
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
      #expect(try await app.value("SELECT count(*) FROM users") == 12)
      let session = try await ana.refresh()
      #expect(session.status == 200)
    }
  }

  @Test func `planting again restores no guests or friends who have left, and overfills no event`()
    async throws
  {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies)
      let (ana, dev, emre) = (try await login(app, "ana"), try await login(app, "dev"), try await login(app, "emre"))
      let climbing = "01900000-0000-7000-8002-000000000004"
      let (ben, cleo) = (try await login(app, "ben"), try await login(app, "cleo"))
      // Both places become free, and others take them.
      for guest in [ben, cleo] { try await ana.withdraw(guest, from: climbing) }
      for guest in [dev, emre] { try await guest.answer("going", to: climbing) }
      try await ana.unfriend(ben)
      let before = try await ana.get("events/\(climbing)")["counts"]
      #expect(before["going"].int == 2)
      try await seed.plant(in: app.dependencies)
      #expect(try await ana.get("events/\(climbing)")["counts"] == before)
      #expect(try await ben.send("GET", "events/\(climbing)").status == 404)
      #expect(try await ana.get("friends")["items"].array.count == 4)
      // A deleted user comes back with their friends and events.
      #expect(try await cleo.send("DELETE", "users/me", #"{"password": "\#(DemoSeed.password)"}"#).status == 204)
      try await seed.plant(in: app.dependencies)
      #expect(try await login(app, "cleo").get("friends")["items"].array.isEmpty == false)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test func `planting again restores no friends or guests whom a user has blocked, and keeps the counts`() async throws
  {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      try await seed.plant(in: app.dependencies)
      let ana = try await login(app, "ana")
      func friends() async throws -> Set<String> {
        Set(try await ana.get("friends")["items"].array.compactMap { $0["user"]["username"].string })
      }
      let blocked: Set = ["ben", "cleo", "dev"]
      let kept = try await friends().subtracting(blocked)
      #expect(kept.count == 2)
      for guest in blocked { #expect(try await ana.send("PUT", "blocks/\(try seed.person(guest).user)").status == 204) }
      try await seed.plant(in: app.dependencies)
      #expect(try await friends() == kept)
      try await app.expectNothingCrossesABlock()
      let housewarming = try await ana.get("events/01900000-0000-7000-8002-00000000000d")
      #expect(housewarming["participants"].array.compactMap { $0["user"]["username"].string } == ["hana", "emre"])
      #expect(housewarming["counts"]["going"].int == 1)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test func `demo users whose login has changed are named, and a reset restores them`() async throws {
    try await TestApp.run { app in
      let seed = try DemoSeed()
      let first = try await seed.plant(in: app.dependencies)
      #expect(first.working == "ana" && first.changed.isEmpty)
      let (ana, ben) = (try await login(app, "ana"), try await login(app, "ben"))
      let change = #"{"currentPassword": "\#(DemoSeed.password)", "newPassword": "another horse ana"}"#
      #expect(try await ana.send("POST", "auth/password", change).status == 204)
      try await ben.editProfile(#"{"username": "benjamin"}"#)
      let second = try await seed.plant(in: app.dependencies)
      #expect(second.working == "cleo")
      #expect(second.changed.count == 2)
      #expect(second.changed.first?.contains("ana") == true && second.changed.last?.contains("benjamin") == true)

      // Another account takes the address of a demo user.
      #expect(try await ana.send("DELETE", "users/me", #"{"password": "another horse ana"}"#).status == 204)
      let registration = #"{"username": "anna", "email": "ana@demo.example", "password": "correct horse"}"#
      #expect(try await app.send("POST", "auth/register", body: registration).status == 201)
      let error = await #expect(throws: AppError.self) { try await seed.plant(in: app.dependencies) }
      #expect(error?.slug == "email-taken")
      #expect(error?.message.contains("ana") == true && error?.message.contains("--reset") == true)

      let third = try await seed.plant(in: app.dependencies, resets: true)
      #expect(third.working == "ana" && third.changed.isEmpty)
      for name in ["ana", "ben"] { _ = try await login(app, name) }
      #expect(try await app.value("SELECT count(*) FROM users") == 12)
      #expect(try await app.value("SELECT count(*) FROM events WHERE creator_id IS NULL") == 0)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test func `a demo user whose username another account has is left out and named`() async throws {
    try await TestApp.run { app in
      let cleo = try await app.signUp("Cleo")
      let everyone = try DemoSeed().people.count
      for resets in [false, true, false] {
        let logins = try await DemoSeed().plant(in: app.dependencies, resets: resets)
        #expect(logins.working == "ana" && logins.changed.isEmpty)
        #expect(logins.leftOut == ["The demo user cleo is left out: another account has this username."])
        #expect(try await app.value("SELECT count(*) FROM users") == everyone)
      }
      #expect(try await cleo.get("friends")["items"].array.isEmpty)
      #expect(try await cleo.get("events")["items"].array.isEmpty)
      // As soon as the name is free, the demo is complete.
      try await cleo.editProfile(#"{"username": "cleopatra"}"#)
      #expect(try await DemoSeed().plant(in: app.dependencies, resets: true).leftOut.isEmpty)
      #expect(try await app.value("SELECT count(*) FROM users") == everyone + 1)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test(arguments: ["ana", "ben", "cleo", "fatima"]) func `the demo without a user names no one who is missing`(
    name: String
  ) async throws {
    try await TestApp.run { app in
      _ = try await app.signUp(name)
      let logins = try await DemoSeed().plant(in: app.dependencies)
      #expect(logins.leftOut.count == 1 && logins.working == (name == "ana" ? "ben" : "ana"))
      try await app.expectConsistency()
    }
  }
}
