import Foundation
import Postgres
import Testing

@testable import App

/// Creating, changing and revoking share links, and joining by them.
@Suite struct LinkTests {
  @Test func `a host creates, reads, changes and revokes links, and the database does not have their tokens`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let made = try await ana.send("POST", "events/\(event)/links", #"{"kind": "answer", "maxGuests": 3}"#)
      #expect(made.status == 201)
      let (id, url) = (made.json["id"].string ?? "", made.json["url"].string ?? "")
      #expect(made.header("Location") == "/api/v1/events/\(event)/links/\(id)")
      #expect(url.hasPrefix("\(app.url)/e/") && made.json["shows"].string == "counts")
      #expect(try await ana.get("events/\(event)/links/\(id)") == made.json)
      #expect(try await ana.get("events/\(event)/links")["items"] == .array([made.json]))
      let stored: String? = try await app.value("SELECT row_to_json(l)::text FROM share_links AS l")
      let token = String(url.split(separator: "/").last ?? "")
      #expect(stored?.contains(token) == false && stored?.contains(token.suffix(20)) == false)
      let edited = try await ana.send(
        "PATCH", "events/\(event)/links/\(id)", #"{"shows": "names", "maxGuests": null, "kind": "view"}"#)
      #expect(edited.json["url"].string == url && edited.json["maxGuests"] == .null)
      #expect(edited.json["shows"].string == "names" && edited.json["kind"].string == "view")
      let bad = try await ana.send(
        "POST", "events/\(event)/links", #"{"kind": "all", "expiresAt": "2001-01-01T00:00:00Z", "maxGuests": 0}"#)
      #expect(Set(bad.badFields) == ["kind", "expiresAt", "maxGuests"])
      for _ in 1...2 { #expect(try await ana.send("DELETE", "events/\(event)/links/\(id)").status == 204) }
      #expect(try await ana.send("GET", "events/\(event)/links/\(id)").problem == "link-not-found")
      #expect(try await app.send("GET", "/e/\(token)").status == 404)
    }
  }

  @Test func `an event has at most 20 links, even if many are created at once, and expired ones make room`()
    async throws
  {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let path = "events/\(event)/links"
      let statuses = try await app.race(25) { _ in try await ana.send("POST", path, #"{"kind": "view"}"#) }
      #expect(statuses == [201: 20, 409: 5])
      #expect(try await ana.send("POST", path, #"{"kind": "view"}"#).problem == "too-many-links")
      try await app.database.execute("UPDATE share_links SET expires_at = now() - interval '1 hour'")
      #expect(try await ana.send("POST", path, #"{"kind": "view"}"#).status == 201)
      #expect(try await ana.get(path)["items"].array.count == 1)
    }
  }

  @Test func `a stranger joins once, hosts see the new counts, and only the answer notifies them`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let key = [("Idempotency-Key", UUID().uuidString)]
      let joined = try await ben.send("POST", "links/\(link.token)/join", headers: key)
      #expect(joined.json["myStatus"].string == "invited" && joined.json["counts"]["invited"].int == 1)
      #expect(try await ben.send("POST", "links/\(link.token)/join", headers: key).json == joined.json)
      #expect(try await ben.join(link.token).json == joined.json)
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["joined"].int == 1)
      #expect(try await app.takeNotifications().isEmpty)
      try await ben.answer("going", to: event)
      let received = try await app.takeNotifications()
      #expect(received.count == 1 && received[0] == ("invitation-answered", ana))
      // Revoked or expired, the link still does not harm a guest who joins again.
      try await app.database.execute("UPDATE share_links SET expires_at = now() - interval '1 hour'")
      #expect(try await ben.join(link.token).json["myStatus"].string == "going")
      try await app.expectConsistency()
    }
  }

  @Test func `links refuse hosts, blocked users, and everyone if they are closed, each in its own way`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 1}"#)
      let path = "events/\(event)/links/\(link.id)"
      #expect(try await ana.join(link.token, expecting: 409).problem == "own-event")
      try await ana.block(ben)
      try await dev.block(ana)
      let unknown = try await cleo.join("B" + link.token.dropFirst(), expecting: 404)
      for hidden in [ben, dev] {
        #expect(try await hidden.join(link.token, expecting: 404).withoutRequestID == unknown.withoutRequestID)
      }
      try await dev.unblock(ana)
      _ = try await ana.send("PATCH", path, #"{"kind": "view"}"#)
      #expect(try await cleo.join(link.token, expecting: 403).problem == "link-only-shows")
      _ = try await ana.send("PATCH", path, #"{"kind": "answer"}"#)
      _ = try await cleo.join(link.token)
      #expect(try await dev.join(link.token, expecting: 409).problem == "link-full")
      try await app.database.execute("UPDATE share_links SET expires_at = now() - interval '1 hour', max_guests = NULL")
      #expect(try await dev.join(link.token, expecting: 409).problem == "link-expired")
      try await ana.cancelEvent(event)
      #expect(try await dev.join(link.token, expecting: 409).problem == "event-cancelled")
      _ = try await ana.send("DELETE", path)
      #expect(try await cleo.join(link.token, expecting: 404).withoutRequestID == unknown.withoutRequestID)
      try await app.takeNotifications()
      try await app.expectConsistency()
    }
  }

  @Test func `no more guests join than the link admits, whatever arrives at once`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(8, around: ana)
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 3}"#)
      // Each comes twice.
      let statuses = try await app.race(16) { try await guests[$0 / 2].send("POST", "links/\(link.token)/join") }
      #expect(statuses[200, default: 0] >= 3 && statuses.values.reduce(0, +) == 16)
      #expect(Set(statuses.keys).isSubset(of: [200, 409]))
      #expect(try await app.value("SELECT count(*) FROM invitations") == 3)
      #expect(try await app.value("SELECT joined_count FROM share_links") == 3)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a block and a join at once never leave a guest across a block`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      for round in 0..<6 {
        let guest = try await app.signUp("guest\(round)")
        async let block = ana.send("PUT", "blocks/\(guest.id)")
        async let join = guest.send("POST", "links/\(link.token)/join")
        let (blocked, joined) = (try await block, try await join)
        #expect(blocked.status == 204 && (joined.status == 200 || joined.status == 404), "\(joined.body)")
        #expect(try await app.value("SELECT count(*) FROM invitations") == 0)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `deleting the account ends its links, and the export has them without their key`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let exported = try await ana.get("users/me/export")["shareLinks"].array
      #expect(exported.map { $0["id"].string } == [link.id] && exported[0]["kid"] == .null)
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM share_links") == 0)
      #expect(try await app.send("GET", "/e/\(link.token)").status == 404)
      try await app.takeNotifications()
    }
  }

  @Test func `a removed co-host does not come back through a link, but one who left does, and one who is invited`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try #require(try await ana.createEvent()["id"].string)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await ana.addHost(ben, to: event)
      try await ben.removeHost(ben, from: event)
      _ = try await ben.join(link.token)
      try await ana.addHost(ben, to: event)
      try await ana.removeHost(ben, from: event)
      #expect(try await ben.join(link.token, expecting: 404).problem == "link-not-found")
      let fresh = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      #expect(try await ben.join(fresh.token, expecting: 404).problem == "link-not-found")
      // A block that ends the role counts alike, even after it has ended.
      try await ana.addHost(ben, to: event)
      try await ben.block(ana)
      try await ben.unblock(ana)
      #expect(try await ben.join(link.token, expecting: 404).problem == "link-not-found")
      try await app.befriend(ana, ben)
      // An invitation ends it.
      try await ana.invite([ben], to: event)
      try await ana.withdraw(ben, from: event)
      _ = try await ben.join(link.token)
      try await app.takeNotifications()
    }
  }

  @Test func `co-hosts see the addresses of their own links, and the creator those of all`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try #require(try await ana.createEvent()["id"].string)
      try await ana.addHost(ben, to: event)
      let (hers, his) = (
        try await ana.createLink(to: event, #"{"kind": "answer"}"#),
        try await ben.createLink(to: event, #"{"kind": "answer"}"#)
      )
      func shows(_ phone: Phone, _ link: (id: String, token: String)) async throws -> Bool {
        let path = "events/\(event)/links/\(link.id)"
        let shown = try await phone.get(path)["url"] != .null
        let listed = try await phone.get("events/\(event)/links")["items"].array.first { $0["id"].string == link.id }
        let edited = try await phone.send("PATCH", path, #"{"maxPlusOnes": 1}"#).json
        #expect((listed?["url"] != .null) == shown && (edited["url"] != .null) == shown)
        return shown
      }
      for (phone, link, expected) in [(ana, hers, true), (ana, his, true), (ben, hers, false), (ben, his, true)] {
        #expect(try await shows(phone, link) == expected)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a co-host's links end with the role`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let event = try #require(try await ana.createEvent()["id"].string)
      for end in ["removing", "blocking"] {
        try await ana.addHost(ben, to: event)
        let link = try await ben.createLink(to: event, #"{"kind": "answer", "shows": "names"}"#)
        if end == "removing" { try await ana.removeHost(ben, from: event) } else { try await ana.block(ben) }
        #expect(try await app.send("GET", "/e/\(link.token)").status == 404, "\(end)")
        #expect(try await cleo.join(link.token, expecting: 404).problem == "link-not-found", "\(end)")
        #expect(try await app.value("SELECT count(*) FROM share_links") == 0, "\(end)")
      }
      try await app.takeNotifications()
    }
  }
}
