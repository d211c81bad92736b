import Foundation
import Postgres
import Testing

@testable import App

@Suite struct DeletionTests {
  @Test func `a deletion needs the password again, and ends all sessions`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.send("DELETE", "users/me", "{}").badFields == ["password"])
      let wrong = try await ana.send("DELETE", "users/me", #"{"password": "wrong horse"}"#)
      #expect(wrong.status == 403)
      #expect(wrong.problem == "wrong-password")
      let foreign = try await ana.send("DELETE", "users/me", #"{"idToken": "a.b.c", "nonce": "x"}"#)
      #expect(foreign.status == 403 && foreign.problem == "identity-not-proven")
      _ = try await ana.get("users/me")

      #expect(try await ana.deleteAccount().body.isEmpty)
      #expect(try await ana.send("GET", "users/me").problem == "session-ended")
      #expect(try await ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#).problem == "session-ended")
      #expect(try await ana.refresh().problem == "session-ended")
      #expect(try await app.logIn("ana", ana.password).problem == "wrong-credentials")
      let sessions: Int? = try await app.value(
        "SELECT count(*) FROM sessions WHERE ended_at IS NULL OR user_id IS NOT NULL OR device IS NOT NULL")
      #expect(sessions == 0)
    }
  }

  @Test func `a deletion touches every list that showed the user, and no other`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let stale = try await app.stale(among: people.others) { try await people.ana.deleteAccount() }
      #expect(
        stale == [
          // His event has one guest fewer, and so has the other guest's copy of it.
          "ben": [.friends, .events, .notifications], "gil": [.events, .invitations],
          "cleo": [.friendRequests, .notifications], "dev": [.sentFriendRequests],
          "emre": [.events, .invitations, .notifications],
          // She had invited him.
          "hugo": [.notifications],
        ])
      let bensFriends = try await people.ben.get("friends")["items"].array
      #expect(bensFriends.map { $0["user"]["username"].string } == ["gil"])
      #expect(try await people.cleo.get("friend-requests")["items"].array.isEmpty)
      #expect(try await people.dev.get("friend-requests?direction=sent")["items"].array.isEmpty)
      let dinner = try await people.ben.get("events/\(people.bensEvent)")
      #expect(dinner["counts"]["invited"].int == 1)
      #expect(dinner["participants"].array.map { $0["user"]["username"].string } == ["gil"])
      #expect(try await app.takeNotifications().map { $0 == ("event-cancelled", people.emre) } == [true])
      try await app.expectConsistency()
    }
  }

  @Test func `coming events are cancelled with a notice, past ones stay, and none has a creator`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = [try await app.signUp("ben"), try await app.signUp("cleo"), try await app.signUp("dev")]
      for guest in guests { try await app.befriend(ana, guest) }
      func time(_ hours: Int) -> String { Timestamp.now().adding(seconds: hours * 3600).rfc3339() }
      let coming = try await ana.createEvent("Coming", inviting: guests)["id"].string ?? ""
      func create(_ title: String, from start: String, to end: String?) async throws -> String {
        try await ana.createEvent(title, inviting: [guests[0]], startTime: start, endTime: end)["id"].string ?? ""
      }
      let running = try await create("Running", from: time(-1), to: nil)
      let over = try await create("Over", from: time(-3), to: time(-1))
      let past = try await create("Past", from: "2020-01-01T10:00:00Z", to: nil)
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
      try await guests[1].answer("going", to: coming)
      try await guests[2].answer("declined", to: coming)
      try await app.takeNotifications()
      try await ana.deleteAccount()

      let received = try await app.takeNotifications()
      #expect(received.allSatisfy { $0.type == "event-cancelled" })
      #expect(
        Set(received.map { "\($0.recipient) \($0.payload["eventId"].string ?? "")" }) == [
          "\(guests[0].id) \(coming)", "\(guests[1].id) \(coming)", "\(guests[0].id) \(running)",
        ])
      #expect(received[0].payload.keys == ["type", "message", "locKey", "locArgs", "eventId", "title"])
      #expect(received.allSatisfy { $0.payload["message"].string?.contains("Ana") == false })
      for (event, status, version) in [
        (coming, "cancelled", 2), (running, "cancelled", 2), (over, "scheduled", 1), (past, "scheduled", 1),
      ] {
        let seen = try await guests[0].get("events/\(event)")
        #expect(seen["status"].string == status, "\(seen)")
        #expect(seen["creator"] == .null && seen.keys.contains("creator"))
        #expect(seen["hosts"] == .array([]))
        #expect(seen["version"].int == version)
      }
      #expect(try await guests[0].get("events?when=past")["items"][0]["creator"] == .null)
      #expect(try await guests[0].get("invitations")["items"].array.allSatisfy { $0["event"]["creator"] == .null })
      for guest in guests {
        #expect(try await guest.answer("maybe", to: coming, expecting: 409).problem == "event-cancelled")
        #expect(try await guest.edit(coming, #"{"title": "Mine"}"#, expecting: 403).problem == "not-a-host")
      }
      // There is no creator to notify.
      try await guests[0].answer("going", to: over)
      #expect(try await app.takeNotifications().isEmpty)
      try await app.database.execute("UPDATE events SET live_until = now() WHERE archived_at IS NULL")
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
      #expect(try await guests[0].get("events?when=past")["items"].array.count == 4)
      try await app.expectConsistency()
    }
  }

  @Test func `events that no one else sees are deleted, and others lose their note, place and web address`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let hers = try await ana.createEvent("Hers")["id"].string ?? ""
      let left = try await ana.createEvent("Left", inviting: [ben])["id"].string ?? ""
      try await ana.withdraw(ben, from: left)
      let shared = try await ana.createEvent("Shared", inviting: [ben])["id"].string ?? ""
      let past = try await ana.createEvent("Past", inviting: [ben], startTime: "2020-01-01T10:00:00Z", endTime: nil)
      let place = #"{"name": "Ana's kitchen", "latitude": 38.7, "longitude": -9.1}"#
      for id in [hers, shared, past["id"].string ?? ""] {
        try await ana.edit(id, #"{"note": "Ring twice", "location": \#(place), "url": "https://ana.example"}"#)
      }
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
      // One edit has reached Ben's inbox and device, another still waits.
      try await ben.register(token: "bens")
      try await app.takeNotifications()
      try await ana.edit(shared, #"{"note": "Ring three times"}"#)
      try await app.fanOut()
      try await ana.edit(shared, #"{"note": "Ring four times", "title": "Shared dinner"}"#)
      #expect(
        try await ben.stale { try await ana.deleteAccount() } == [.friends, .events, .invitations, .notifications])

      let titles = try await app.database.rows("SELECT title FROM events ORDER BY title")
      #expect(try titles.map { try $0[0] as String } == ["Past", "Shared dinner"])
      let traces: Int? = try await app.value(
        """
        SELECT count(*)
        FROM (
          SELECT payload FROM notification_queue UNION ALL SELECT payload FROM deliveries
          UNION ALL SELECT payload FROM notifications
        ) AS kept
        WHERE payload::text ~ 'Ring|kitchen|38[.]7|ana[.]example'
        """)
      #expect(traces == 0)
      let kept: Int? = try await app.value(
        "SELECT count(*) FROM notifications WHERE type = 'event-updated' AND payload->>'title' LIKE 'Shared%'")
      #expect(kept == 3)
      try await app.fanOut()
      let edits = try await ben.get("notifications")["items"].array.filter { $0["type"].string == "event-updated" }
      #expect(edits[0]["message"].string == "“Shared dinner” has changed: the title, the note.")
      #expect(edits[0]["changes"].array.map { $0["new"] } == [.string("Shared dinner"), .null])
      try await app.forgetDeliveries()
      try await app.takeNotifications()
      for id in [shared, past["id"].string ?? ""] {
        let seen = try await ben.get("events/\(id)")
        #expect(seen["title"].string != nil)
        for member in ["note", "location", "url", "creator"] { #expect(seen[member] == .null, "\(member)") }
      }
      try await app.expectConsistency()
      // Once the last guest has also gone, no one sees them.
      try await ben.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM events") == 0)
    }
  }

  @Test func `a freed place goes to the guest who has waited longest`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var guests: [Phone] = []
      for name in ["ben", "cleo", "dev", "emre"] {
        guests.append(try await app.signUp(name))
        try await app.befriend(ana, guests[guests.count - 1])
      }
      let id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
      for guest in guests.dropLast() { try await guest.answer("going", to: id) }
      try await app.takeNotifications()
      let (hers, cleos) = (try await ana.refreshLists(), try await guests[1].refreshLists())
      try await guests[0].deleteAccount()
      try await app.fanOut()
      #expect(try await ana.stale(hers) == [.friends, .events, .notifications])
      #expect(try await guests[1].stale(cleos) == [.events, .invitations, .notifications])
      let counts = try await ana.get("events/\(id)")["counts"]
      #expect(counts["going"].int == 1)
      #expect(counts["waitlisted"].int == 1)
      #expect(counts["invited"].int == 1)
      #expect(try await guests[1].get("events/\(id)")["myStatus"].string == "going")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["waitlist-promoted", "waitlist-promoted"])
      #expect(received.map(\.recipient) == [guests[1].id, ana.id])
      #expect(received.map { $0.payload["userId"].string } == [guests[1].id, guests[1].id])
      // A guest on the waitlist, or without an answer, frees no place.
      try await guests[2].deleteAccount()
      try await guests[3].deleteAccount()
      #expect(try await app.takeNotifications().isEmpty)
      try await app.expectConsistency()
    }
  }

  /// Lists show counts up to 200 invitations: with one guest fewer, they appear in everyone's lists.
  @Test func `a guest who leaves may bring the counts back into the lists`() async throws {
    try await TestApp.run { app in
      let (_, ben, cleo, id) = try await app.hostAndGuests()
      try await app.takeNotifications()
      try await app.database.execute(
        """
        WITH crowd AS (
          INSERT INTO users (id, username, display_name)
          SELECT uuid_v7(), 'guest' || number, 'Guest' FROM generate_series(1, 199) AS number
          RETURNING id
        ), stamped AS (
          INSERT INTO user_stamps (user_id) SELECT id FROM crowd
        ), invited AS (
          INSERT INTO invitations (event_id, user_id) SELECT \(Event.ID(id)), id FROM crowd
        )
        UPDATE events SET invited_count = 201 WHERE id = \(Event.ID(id))
        """)
      #expect(try await cleo.get("events")["items"][0]["counts"] == .null)
      #expect(try await cleo.stale { try await ben.deleteAccount() } == [.events, .invitations])
      #expect(try await cleo.get("events")["items"][0]["counts"]["invited"].int == 200)
      try await app.expectConsistency()
    }
  }

  @Test func `nothing that remains names the user`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(around: "zerubabel", in: app)
      let ana = people.ana
      try await ana.editProfile(#"{"bio": "Zerubabel's bio"}"#)
      try await ana.editProfile(#"{"email": "zerubabel@example.org", "currentPassword": "\#(ana.password)"}"#)
      _ = try await ana.signInAgain(device: "Zerubabel's phone")
      // Notifications about them, in inboxes and on their way to a device.
      try await people.ben.register(token: "bens")
      try await ana.createEvent("First", inviting: [people.ben])
      try await app.fanOut()
      // Notices of every kind that are not fanned out yet.
      try await ana.sendFriendRequest(to: people.hugo)
      let fromDev = try await ana.get("friend-requests")["items"][0]["id"].string ?? ""
      try await ana.accept(fromDev)
      try await ana.answer("going", to: people.bensEvent)
      try await ana.createEvent("Another", inviting: [people.ben])
      try await people.ben.createEvent("His", inviting: [ana])
      let grant = try AppleGrant("refresh", clientID: "com.example.app", keys: app.dependencies.refreshTokenKeys)
      try await app.database.execute(
        """
        INSERT INTO identities (provider, subject, user_id, sealed_grant)
        VALUES ('apple', '001.zerubabel', \(ana.userID), \(grant.sealed)),
          ('google', 'zerubabel', \(ana.userID), NULL)
        """)
      let named = try await traces(of: ana, in: app)
      #expect(
        named.isSuperset(of: [
          "users", "friend_requests", "notification_queue", "notifications", "deliveries", "mails", "sessions",
          "mail_tokens", "identities",
        ]))
      try await ana.deleteAccount()
      #expect(try await traces(of: ana, in: app) == [])
      // Rows that do not name them are still there.
      #expect(Set(try await app.queuedNotices().map(\.type)) == ["event-cancelled"])
      #expect(try await app.value("SELECT count(*) FROM apple_revocations") == 1)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  /// The tables with a row that contains the person's id or name.
  private func traces(of person: Phone, in app: TestApp) async throws -> Set<String> {
    let tables = try await app.database.rows(
      """
      SELECT relname FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      """)
    var found: Set<String> = []
    for table in tables {
      let name: String = try table[0]
      let rows: Int? = try await app.value(
        """
        SELECT count(*) FROM \(unescaped: name) AS t
        WHERE t::text ILIKE '%' || \(person.username) || '%' OR t::text LIKE '%' || \(person.id) || '%'
        """)
      if rows != 0 { found.insert(name) }
    }
    return found
  }

  @Test func `a name stays retired for 30 days, and then anyone may take it`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ana.deleteAccount()
      let registration = #"{"username": "ANA", "email": "ana@example.com", "password": "correct horse ANA"}"#
      #expect(try await app.send("POST", "auth/register", body: registration).problem == "username-taken")
      #expect(try await ben.editProfile(#"{"username": "Ana"}"#, expecting: 409).problem == "username-taken")
      let days: Int? = try await app.value(
        "SELECT extract(day FROM max(until) - now())::integer FROM retired_usernames")
      #expect([29, 30].contains(days))
      try await app.database.execute("UPDATE retired_usernames SET until = now() - interval '1 second'")
      // The address was free immediately.
      let again = try Phone(app, "ANA", try await app.send("POST", "auth/register", body: registration))
      try await again.deleteAccount()
      #expect(try await ben.editProfile(#"{"username": "ana"}"#, expecting: 409).problem == "username-taken")
    }
  }

  @Test func `a registration during the deletion does not get the name`() async throws {
    try await TestApp.run { app in
      for round in 0..<8 {
        let ana = try await app.signUp("ana\(round)")
        async let deleted: APIResponse = ana.deleteAccount()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
          for number in 0..<4 {
            group.addTask {
              try await app.send(
                "POST", "auth/register",
                body: """
                  {"username": "ana\(round)", "email": "\(round).\(number)@example.com", "password": "correct horse"}
                  """
              ).status
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        _ = try await deleted
        #expect(statuses == [409, 409, 409, 409])
      }
    }
  }
}
