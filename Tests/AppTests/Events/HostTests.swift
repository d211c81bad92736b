import Postgres
import Testing

@testable import App

/// Co-hosts: who may add whom, what they may do, and what ends the role.
@Suite struct HostTests {
  /// Ana's event with ben as a co-host and cleo as a guest. Ana is friends with ben, cleo and dev; ben with dev.
  private struct Scene {
    let ana, ben, cleo, dev: Phone
    let event: String

    func hosts(for reader: Phone) async throws -> [String] {
      try await reader.get("events/\(event)")["hosts"].array.compactMap { $0["username"].string }
    }
  }

  private func run(_ body: @escaping @Sendable (TestApp, Scene) async throws -> Void) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      for (one, other) in [(ana, cleo), (ana, dev), (ben, dev)] { try await app.befriend(one, other) }
      let event = try await ana.createEvent("Swim", inviting: [cleo], capacity: 1)["id"].string ?? ""
      try await ana.addHost(ben, to: event)
      try await body(app, Scene(ana: ana, ben: ben, cleo: cleo, dev: dev, event: event))
    }
  }

  @Test func `a co-host whom an operator adds with SQL is also shown`() async throws {
    try await run { app, scene in
      let id = try #require(Event.ID(try await scene.ana.createEvent("Run", inviting: [scene.cleo])["id"].string ?? ""))
      try await app.database.execute(
        "INSERT INTO event_co_hosts (event_id, user_id, added_at) VALUES (\(id), \(scene.dev.userID), now())")
      for reader in [scene.ana, scene.cleo, scene.dev] {
        let hosts = try await reader.get("events?ids=\(id)")["items"][0]["hosts"].array
        #expect(hosts.compactMap { $0["username"].string } == ["ana", "dev"])
      }
      try await app.takeNotifications()
    }
  }

  @Test func `the offer to host goes to the friend, and the acceptance to the creator`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      let added = try await app.takeNotifications()
      // The offer's own went when it was accepted.
      #expect(added.map(\.type) == ["event-invited", "host-added"] && added[1].recipient == ana.id)
      #expect(added[1].payload["message"].string == "Ben is now a host of “Swim”.")
      let view = try await ben.get("events/\(event)")
      #expect([view["myRole"].string, view["myStatus"].string] == ["host", "host"])
      #expect(try await scene.hosts(for: cleo) == ["ana", "ben"])
      try await ana.offerHost(dev, to: event)
      let offered = try await app.takeNotifications()
      #expect(offered.map(\.type) == ["host-offered"] && offered[0].recipient == dev.id)
      #expect(offered[0].payload["message"].string == "Ana wants you as a host of “Swim”.")
    }
  }

  @Test func `a co-host edits, invites their own friends and withdraws guests, and all hosts are notified of answers`()
    async throws
  {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      try await app.takeNotifications()
      try await ben.edit(event, #"{"title": "Dive"}"#)
      try await ben.invite([dev], to: event)
      try await cleo.answer("going", to: event)
      try await ben.withdraw(cleo, from: event)
      let received = try await app.takeNotifications()
      let pairs = received.map { "\($0.type) \($0.recipient)" }
      #expect(
        Set(pairs) == [
          // Cleo loses what she had not read yet with the invitation.
          "event-updated \(ana.id)", "event-invited \(dev.id)",
          "invitation-answered \(ana.id)", "invitation-answered \(ben.id)", "invitation-withdrawn \(cleo.id)",
        ])
      #expect(try await ben.get("events/\(event)/invitations")["items"].array.count == 1)
      #expect(try await ben.get("events")["items"][0]["counts"]["invited"].int == 1)
    }
  }

  @Test func `the creator can be neither removed nor invited`() async throws {
    try await run { app, scene in
      let (ana, ben, event) = (scene.ana, scene.ben, scene.event)
      #expect(try await ben.removeHost(ana, from: event, expecting: 403).problem == "not-the-creator")
      // Hosts are not guests, and inviting them is harmless.
      try await ben.invite([ana], to: event)
      #expect(try await ana.get("events/\(event)/invitations")["items"].array.count == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `a guest who becomes a host frees the place, and a host who leaves is a stranger`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      try await ana.invite([dev], to: event)
      try await cleo.answer("going", to: event)
      try await dev.answer("going", to: event)
      try await app.takeNotifications()
      try await ana.addHost(cleo, to: event)
      #expect(try await dev.get("events/\(event)")["myStatus"].string == "going")
      #expect(try await cleo.get("invitations")["items"].array.isEmpty)
      #expect(try await scene.hosts(for: ana) == ["ana", "ben", "cleo"])
      #expect(
        try await app.takeNotifications().map(\.type).sorted() == [
          "host-added", "host-added", "waitlist-promoted", "waitlist-promoted", "waitlist-promoted",
        ])
      try await cleo.removeHost(cleo, from: event)
      try await ana.removeHost(ben, from: event)
      for former in [ben, cleo] {
        #expect(try await former.send("GET", "events/\(event)").status == 404)
        #expect(try await former.get("events")["items"].array.isEmpty)
      }
      #expect(try await ben.removeHost(ben, from: event, expecting: 404).problem == "event-not-found")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["invitation-withdrawn"] && received.map(\.recipient) == [ben.id])
      let types = try await ben.get("notifications")["items"].array.compactMap { $0["type"].string }
      #expect(types.first == "invitation-withdrawn" && !types.contains("host-added"))
    }
  }

  @Test func `an offered user is no host, and named nowhere, until they accept`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let offers = [try await ana.offerHost(cleo, to: event), try await ana.offerHost(dev, to: event)]
      try await app.takeNotifications()
      // Offering again changes nothing.
      try await ana.offerHost(dev, to: event)
      #expect(try await app.takeNotifications().isEmpty)
      func names() async throws -> [Bool] {
        let page = try await app.send("GET", "/e/\(link.token)").body
        return ["Ben", "Cleo", "Dev"].map { page.contains($0) }
      }
      #expect(try await scene.hosts(for: ana) == ["ana", "ben"])
      #expect(try await names() == [true, false, false])
      #expect(try await cleo.get("events/\(event)")["myRole"].string == "guest")
      #expect(try await cleo.edit(event, #"{"title": "Mine"}"#, expecting: 403).problem == "not-a-host")
      #expect(try await dev.send("GET", "events/\(event)").status == 404)
      for host in [ana, ben] {
        let open = try await host.get("events/\(event)/host-offers")["items"].array
        #expect(open.map { $0["user"]["username"].string } == ["cleo", "dev"])
        #expect(open.allSatisfy { $0["offeredAt"].string != nil })
      }
      let shown = try await dev.get("proposals")["items"].array
      #expect(shown.map { $0["kind"].string } == ["host"] && shown[0]["person"]["username"].string == "ana")
      #expect(shown[0]["event"]["title"].string == "Swim" && shown[0]["status"] == .null)
      // Others' proposals do not exist.
      #expect(try await ben.accept(proposal: offers[1], expecting: 404).problem == "proposal-not-found")
      #expect(try await ana.decline(proposal: offers[1], expecting: 404).problem == "proposal-not-found")
      // A co-host does not see an offer across a block.
      try await ben.block(dev)
      let seen = try await ben.get("events/\(event)/host-offers")["items"].array
      #expect(seen.map { $0["user"]["username"].string } == ["cleo"])
      try await ben.unblock(dev)
      let accepted = try await cleo.accept(proposal: offers[0])
      #expect(accepted.json["myRole"].string == "host")
      #expect(try await names() == [true, true, false])
      let told = try await app.takeNotifications()
      #expect(told.map(\.type) == ["host-added", "host-added"] && Set(told.map(\.recipient)) == [ana.id, ben.id])
      try await dev.decline(proposal: offers[1])
      #expect(try await app.takeNotifications().isEmpty)
      for proposal in offers { try await cleo.accept(proposal: proposal, expecting: 404) }
      try await dev.accept(proposal: offers[1], expecting: 404)
    }
  }

  @Test func `an offer to a guest who is no friend of the creator ends with a block of another host`() async throws {
    for blocksFirst in [true, false] {
      try await run { app, scene in
        let (ana, ben, event) = (scene.ana, scene.ben, scene.event)
        let emre = try await app.signUp("emre")
        try await app.befriend(ben, emre)
        try await ben.invite([emre], to: event)
        if blocksFirst {
          let offer = try await ana.offerHost(emre, to: event)
          try await app.fanOut()
          try await emre.block(ben)
          try await emre.accept(proposal: offer, expecting: 404)
        } else {
          // Emre and a guest who becomes a host do not see each other.
          let dev = scene.dev
          try await emre.block(dev)
          let offers = [try await ana.offerHost(emre, to: event), try await ana.offerHost(dev, to: event)]
          try await app.fanOut()
          try await dev.accept(proposal: offers[1])
          try await emre.accept(proposal: offers[0], expecting: 404)
        }
        try await app.fanOut()
        #expect(try await emre.get("proposals")["items"].array.isEmpty)
        let types = try await emre.get("notifications")["items"].array.compactMap { $0["type"].string }
        #expect(!types.contains("host-offered"))
        #expect(try await app.value("SELECT count(*) FROM host_offers") == 0)
        try await app.takeNotifications()
      }
    }
  }

  @Test func `only a friend or a guest becomes a host, and not of a closed event`() async throws {
    try await run { app, scene in
      let (ana, ben, event) = (scene.ana, scene.ben, scene.event)
      let emre = try await app.signUp("emre")
      let refused = try await ana.addHost(emre, to: event, expecting: 422)
      #expect(refused.json["errors"][0]["code"].string == "not-a-friend")
      try await emre.block(ana)
      #expect(try await ana.addHost(emre, to: event, expecting: 404).problem == "user-not-found")
      try await ana.addHost(ana, to: event)
      try await ana.removeHost(ana, from: event, expecting: 422)
      try await ana.cancelEvent(event)
      #expect(try await ana.addHost(scene.dev, to: event, expecting: 409).problem == "event-cancelled")
      #expect(try await ben.removeHost(ben, from: event, expecting: 409).problem == "event-cancelled")
      let received = try await app.takeNotifications().filter { $0.type == "event-cancelled" }.map(\.recipient)
      #expect(Set(received) == [ben.id, scene.cleo.id])
    }
  }

  @Test func `a block ends the role of a creator's co-host, withdraws a host's guest, and keeps two co-hosts`()
    async throws
  {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      try await ana.addHost(dev, to: event)
      try await app.takeNotifications()
      try await ben.block(dev)
      #expect(try await scene.hosts(for: ben) == ["ana", "ben"])
      #expect(try await scene.hosts(for: dev) == ["ana", "dev"])
      #expect(try await scene.hosts(for: cleo) == ["ana", "ben", "dev"])
      try await ben.unblock(dev)
      #expect(try await scene.hosts(for: ben) == ["ana", "ben", "dev"])
      try await ben.block(cleo)
      #expect(try await cleo.send("GET", "events/\(event)").status == 404)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token)
      try await app.fanOut()
      try await visit.answer("maybe")
      func notices(for host: Phone) async throws -> Int? {
        try await app.value(
          """
          SELECT (SELECT count(*) FROM notifications WHERE recipient_id = \(host.userID) AND payload ? 'guestId')
            + (SELECT count(*) FROM notification_queue WHERE \(host.userID) = ANY(recipient_ids))
          """)
      }
      #expect(try await notices(for: dev) == 2)
      try await dev.block(ana)
      #expect(try await dev.send("GET", "events/\(event)").status == 404)
      #expect(try await scene.hosts(for: ana) == ["ana", "ben"])
      // With the role, the co-host loses all notices about the event, delivered or not.
      #expect(try await notices(for: dev) == 0)
      #expect(try await notices(for: ben) == 2)
      try await app.takeNotifications()
    }
  }

  @Test func `a host cannot invite a friend across a block between the friend and another host`() async throws {
    try await run { app, scene in
      let (ana, ben, dev, event) = (scene.ana, scene.ben, scene.dev, scene.event)
      // The creator's block. The co-host is still dev's friend.
      try await ana.block(dev)
      let refused = try await ben.invite([dev], to: event, expecting: 422)
      #expect(refused.json["errors"][0]["field"].string == "userIds[0]")
      #expect(refused.json["errors"][0]["code"].string == "not-allowed")
      #expect(try await dev.send("GET", "events/\(event)").status == 404)
      // A block by the other side counts alike.
      try await ana.unblock(dev)
      try await dev.block(ana)
      try await ben.invite([dev], to: event, expecting: 422)
      try await dev.unblock(ana)
      try await ben.invite([dev], to: event)
      #expect(try await dev.get("events/\(event)")["myStatus"].string == "invited")
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }

  @Test func `a new co-host ends the invitations of guests across a block, and a place goes to the next in line`()
    async throws
  {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      let emre = try await app.signUp("emre")
      try await app.befriend(ben, emre)
      try await ben.invite([emre], to: event)
      try await cleo.answer("going", to: event)
      #expect(try await emre.answer("going", to: event).json["myStatus"].string == "waitlisted")
      try await cleo.block(dev)
      // Guests who block each other both stay until one of them is a host.
      #expect(try await cleo.get("events/\(event)")["myStatus"].string == "going")
      try await app.takeNotifications()
      try await ana.addHost(dev, to: event)
      #expect(try await cleo.send("GET", "events/\(event)").status == 404)
      #expect(try await cleo.get("notifications")["items"].array.allSatisfy { $0["eventId"].string != event })
      #expect(try await emre.get("events/\(event)")["myStatus"].string == "going")
      let received = try await app.takeNotifications().map { "\($0.type) \($0.recipient)" }
      #expect(received.contains("waitlist-promoted \(emre.id)"))
      #expect(received.allSatisfy { !$0.contains(cleo.id) })
      try await app.expectNothingCrossesABlock()
      try await app.expectCounts()
    }
  }

  @Test func `a place of a guest who becomes a host does not go to one across a block`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      let emre = try await app.signUp("emre")
      try await app.befriend(ben, emre)
      try await ben.invite([dev, emre], to: event)
      for guest in [dev, cleo, emre] { try await guest.answer("going", to: event) }
      try await dev.block(cleo)
      try await app.takeNotifications()
      try await ana.addHost(dev, to: event)
      #expect(try await emre.get("events/\(event)")["myStatus"].string == "going")
      let received = try await app.takeNotifications()
      #expect(received.filter { $0.type == "waitlist-promoted" }.map(\.recipient) == [emre.id])
      #expect(received.allSatisfy { $0.recipient != cleo.id && $0.payload["userId"].string != cleo.id })
      try await app.expectNothingCrossesABlock()
      try await app.expectCounts()
    }
  }

  @Test func `an heir has no co-hosts across a block`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      try await ana.addHost(dev, to: event)
      try await dev.block(ben)
      #expect(try await scene.hosts(for: cleo) == ["ana", "ben", "dev"])
      try await ana.deleteAccount()
      #expect(try await scene.hosts(for: cleo) == ["ben"])
      #expect(try await dev.send("GET", "events/\(event)").status == 404)
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }

  @Test func `the longest-serving co-host inherits the event of a deleted account`() async throws {
    try await run { app, scene in
      let (ana, ben, cleo, dev, event) = (scene.ana, scene.ben, scene.cleo, scene.dev, scene.event)
      try await ana.addHost(dev, to: event)
      try await ana.edit(event, #"{"note": "Deep"}"#)
      try await app.takeNotifications()
      try await ana.deleteAccount()
      let view = try await cleo.get("events/\(event)")
      #expect([view["creator"]["username"].string, view["note"].string] == ["ben", "Deep"])
      #expect(view["status"].string == "scheduled")
      #expect(try await scene.hosts(for: cleo) == ["ben", "dev"])
      #expect(try await ben.get("events/\(event)")["myRole"].string == "creator")
      try await ben.deleteAccount()
      try await dev.deleteAccount()
      #expect(try await cleo.get("events/\(event)")["status"].string == "cancelled")
      #expect(try await app.takeNotifications().map(\.type) == ["event-cancelled"])
    }
  }

  @Test func `the export has the events that a user co-hosts`() async throws {
    try await run { app, scene in
      let hosted = try await scene.ben.get("users/me/export")["hostedEvents"].array
      #expect(hosted.map { $0["title"].string } == ["Swim"])
      try await app.takeNotifications()
    }
  }
}
