import Foundation
import Postgres
import Testing

@testable import App

/// The notifications of proposals, and how proposals end: answers with a user's address, and offers to host.
@Suite struct ProposalTests {
  /// Ana's event, at which zoe has an answer of her own and another one as a visitor. Both are friends, and zoe has a
  /// phone.
  private struct Scene {
    let app: TestApp
    let ana, zoe: Phone
    let event: String
    let visit: Visit

    /// Every notice of a type for zoe: in the queue, in her inbox, and on the way to her phone.
    func notices(_ type: String) async throws -> [Int] {
      var counts: [Int] = []
      for (table, condition) in [
        ("notification_queue", "\(zoe.userID) = ANY(recipient_ids)"),
        ("notifications", "recipient_id = \(zoe.userID)"), ("deliveries", "recipient_id = \(zoe.userID)"),
      ] as [(String, SQL)] {
        let count: Int? = try await app.value(
          "SELECT count(*) FROM \(unescaped: table) WHERE type = \(type) AND \(condition)")
        counts.append(count ?? 0)
      }
      return counts
    }

    /// Files the notices, and queues a push for each.
    func fanOut() async throws {
      while try await FanOut.step(in: app.service).notices > 0 {}
    }

    func proposal() async throws -> String { try #require(try await zoe.proposals(about: event).first) }
  }

  private func run(_ body: @escaping @Sendable (Scene) async throws -> Void) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (ana, zoe) = try await app.friends("ana", "zoe")
      try await app.verifyAddress(of: zoe)
      try await app.takeMails()
      let event = try await ana.createEvent("Swim", inviting: [zoe])["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await zoe.answer("going", to: event)
      try await zoe.addDevice("zoes-phone")
      let visit = try await app.confirmedVisit(link.token, "maybe", email: "zoe@example.com")
      while try await Visitor.mergeMarked(in: app.service, logger: .quiet) > 0 {}
      try await body(Scene(app: app, ana: ana, zoe: zoe, event: event, visit: visit))
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `what tells of a proposed answer goes when it is decided or ends, wherever it is`() async throws {
    for isFiled in [false, true] {
      for end in [
        "accept", "decline", "erase", "remove", "cancel", "archive", "address", "withdraw", "block", "host", "account",
      ] {
        try await run { scene in
          let (app, ana, zoe, event) = (scene.app, scene.ana, scene.zoe, scene.event)
          #expect(try await scene.notices("answer-proposed") == [1, 0, 0])
          if isFiled {
            try await scene.fanOut()
            #expect(try await scene.notices("answer-proposed") == [0, 1, 1])
          }
          let proposal = try await scene.proposal()
          let stamps = try await zoe.refreshLists()
          var (status, state) = (404, "gone")
          switch end {
          case "accept": try await zoe.accept(proposal: proposal)
          case "decline": try await zoe.decline(proposal: proposal)
          case "erase": try await scene.visit.act("erase", expecting: 200)
          case "remove":
            #expect(try await ana.send("DELETE", "events/\(event)/invitations/\(scene.visit.id)").status == 200)
          case "cancel":
            try await ana.cancelEvent(event)
            (status, state) = (409, "maybe 0")
          case "archive":
            let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
            _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
          case "address":
            try await app.takeMails()
            try await zoe.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(zoe.password)"}"#)
            #expect(try await zoe.verify(try await app.takeToken("mail-verify-email")).status == 204)
            state = "maybe 0"
          case "withdraw": try await ana.withdraw(zoe, from: event)
          case "host": try await ana.addHost(zoe, to: event)
          case "account":
            try await zoe.deleteAccount()
            #expect(try await scene.visit.state == state)
            return
          default: try await zoe.block(ana)
          }
          #expect(try await scene.notices("answer-proposed") == [0, 0, 0], "\(end), filed: \(isFiled)")
          if isFiled { #expect(try await zoe.stale(stamps).contains(.notifications), "\(end)") }
          #expect(try await zoe.proposals(about: event).isEmpty, "\(end)")
          #expect(try await scene.visit.state == state, "\(end)")
          try await zoe.accept(proposal: proposal, expecting: status)
          try await zoe.decline(proposal: proposal, expecting: status)
        }
      }
    }
  }

  @Test func `what tells of an offer to host goes when it is decided or ends, wherever it is`() async throws {
    for isFiled in [false, true] {
      for end in [
        "accept", "decline", "take back", "cancel", "archive", "withdraw", "block", "unfriend", "blocks the host",
        "creator's account", "account",
      ] {
        try await run { scene in
          let (app, ana, zoe) = (scene.app, scene.ana, scene.zoe)
          let event = try await ana.createEvent("Run")["id"].string ?? ""
          let offer = try await ana.offerHost(zoe, to: event)
          #expect(try await scene.notices("host-offered") == [1, 0, 0])
          if isFiled {
            try await scene.fanOut()
            #expect(try await scene.notices("host-offered") == [0, 1, 1])
          }
          let stamps = try await zoe.refreshLists()
          switch end {
          case "accept": try await zoe.accept(proposal: offer)
          case "decline": try await zoe.decline(proposal: offer)
          case "take back": try await ana.removeHost(zoe, from: event)
          case "cancel": try await ana.cancelEvent(event)
          case "archive":
            let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
            _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
          case "withdraw":
            try await ana.invite([zoe], to: event)
            try await ana.withdraw(zoe, from: event)
          case "block": try await ana.block(zoe)
          case "unfriend": try await zoe.unfriend(ana)
          case "blocks the host": try await zoe.block(ana)
          case "creator's account": try await ana.deleteAccount()
          default:
            try await zoe.deleteAccount()
            #expect(try await app.value("SELECT count(*) FROM host_offers") == 0)
            return
          }
          #expect(try await scene.notices("host-offered") == [0, 0, 0], "\(end), filed: \(isFiled)")
          if isFiled { #expect(try await zoe.stale(stamps).contains(.notifications), "\(end)") }
          #expect(try await zoe.proposals(about: event).isEmpty, "\(end)")
          try await zoe.accept(proposal: offer, expecting: ["cancel", "archive"].contains(end) ? 409 : 404)
          let roles: Int? = try await app.value("SELECT count(*) FROM event_co_hosts WHERE user_id = \(zoe.userID)")
          #expect(roles == (end == "accept" ? 1 : 0), "\(end)")
          if end == "block" {
            // What a block has ended does not come back.
            try await ana.unblock(zoe)
            #expect(try await scene.notices("host-offered") == [0, 0, 0])
          }
        }
      }
    }
  }

  @Test func `an offer to a friend ends with the friendship, and one to a guest does not`() async throws {
    try await run { scene in
      let (ana, zoe) = (scene.ana, scene.zoe)
      let event = try await ana.createEvent("Run")["id"].string ?? ""
      let offers = (try await ana.offerHost(zoe, to: event), try await ana.offerHost(zoe, to: scene.event))
      try await ana.unfriend(zoe)
      #expect(try await zoe.proposals(about: event).isEmpty)
      #expect(try await zoe.proposals(about: scene.event).contains(offers.1))
      #expect(try await ana.get("events/\(event)/host-offers")["items"].array.isEmpty)
      try await zoe.accept(proposal: offers.0, expecting: 404)
      // Friends again, it has not come back.
      try await scene.app.befriend(ana, zoe)
      try await zoe.accept(proposal: offers.0, expecting: 404)
      try await zoe.accept(proposal: offers.1)
    }
  }

  @Test func `an offer and the end of the friendship at once leave no offer to a stranger`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      let (ana, zoe) = try await app.friends("ana", "zoe")
      for round in 0..<12 {
        let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
        let statuses = try await app.race(2) { number in
          number == 0
            ? try await ana.send("PUT", "events/\(event)/hosts/\(zoe.id)")
            : try await zoe.send("DELETE", "friends/\(ana.id)")
        }
        #expect(Set(statuses.keys).isSubset(of: [200, 204, 422]), "\(statuses)")
        #expect(try await app.value("SELECT count(*) FROM host_offers") == 0, "\(statuses)")
        try await app.befriend(ana, zoe)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a host sets no answer that an account decides about`() async throws {
    try await run { scene in
      let (ana, zoe, visit, event) = (scene.ana, scene.zoe, scene.visit, scene.event)
      let path = "events/\(event)/invitations/\(visit.id)"
      let refused = try await ana.send("PUT", path, #"{"status": "declined"}"#)
      #expect(refused.status == 409 && refused.problem == "answer-proposed", "\(refused.body)")
      #expect(try await visit.state == "maybe 0")
      // The account accepts what it has read. Then the guest has one answer, which a host may set.
      try await zoe.accept(proposal: try await scene.proposal())
      try await ana.setAnswer("declined", of: zoe, to: event)
      #expect(try await zoe.get("events/\(event)")["myStatus"].string == "declined")
    }
  }

  @Test func `the proposal of a guest who is removed or blocked ends, and does not bring the guest back`() async throws
  {
    for end in ["removed", "blocked by the host", "blocks the host", "blocked by a new host"] {
      try await run { scene in
        let (app, ana, zoe, event) = (scene.app, scene.ana, scene.zoe, scene.event)
        let proposal = try await scene.proposal()
        switch end {
        case "removed": try await ana.withdraw(zoe, from: event)
        case "blocked by the host": try await ana.block(zoe)
        case "blocks the host": try await zoe.block(ana)
        default:
          let ben = try await app.signUp("ben")
          try await app.befriend(ana, ben)
          try await ben.block(zoe)
          try await ana.addHost(ben, to: event)
        }
        #expect(try await zoe.get("proposals")["items"].array.isEmpty, "\(end)")
        try await zoe.accept(proposal: proposal, expecting: 404)
        try await zoe.decline(proposal: proposal, expecting: 404)
        #expect(try await scene.visit.page().status == 404, "\(end)")
        #expect(try await zoe.send("GET", "events/\(event)").status == 404, "\(end)")
        let counts = try await ana.get("events/\(event)")["counts"]
        #expect([counts["going"].int, counts["maybe"].int] == [0, 0], "\(end)")
      }
    }
  }

  @Test func `a free place does not go to the proposed answer of the guest who is removed`() async throws {
    try await run { scene in
      let (app, ana, zoe) = (scene.app, scene.ana, scene.zoe)
      let (ben, cleo) = (try await app.signUp("ben"), try await app.signUp("cleo"))
      for friend in [ben, cleo] { try await app.befriend(ana, friend) }
      let event = try await ana.createEvent("Sail", inviting: [zoe, cleo], capacity: 1)["id"].string ?? ""
      try await ana.addHost(ben, to: event)
      try await zoe.answer("going", to: event)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.confirmedVisit(link.token, "going", email: "zoe@example.com")
      try await cleo.answer("going", to: event)
      while try await Visitor.mergeMarked(in: app.service, logger: .quiet) > 0 {}
      #expect(try await visit.state == "waitlisted 0")
      try await app.takeNotifications()
      try await ana.withdraw(zoe, from: event)
      // Both leave before the place is given on, so the other host reads of no one but Cleo.
      let told = try await app.takeNotifications().filter { $0.type == "waitlist-promoted" && $0.recipient == ben.id }
      #expect(told.map(\.payload["userId"].string) == [cleo.id])
      #expect(try await cleo.get("events/\(event)")["myStatus"].string == "going")
    }
  }

  @Test func `an acceptance that is repeated after its response was forgotten gets the event as it is`() async throws {
    try await run { scene in
      let (app, ana, zoe, event) = (scene.app, scene.ana, scene.zoe, scene.event)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let yan = try await app.visit(link.token, name: "Yan Zebra")
      let offer = try await ana.offerHost(zoe, to: event)
      for proposal in [try await zoe.proposals(about: event).first { $0 != offer } ?? "", offer] {
        func accept(_ key: String) async throws -> APIResponse {
          try await zoe.send("POST", "proposals/\(proposal)/accept", headers: [("Idempotency-Key", key)])
        }
        #expect(try await accept("one").status == 200)
        if proposal == offer {
          try await yan.act("erase", expecting: 200)
        } else {
          // As the end of a visitor in the response does.
          try await app.database.execute("UPDATE idempotency_keys SET sealed_response = NULL")
        }
        try await ana.edit(event, #"{"note": "Bring towels \#(proposal)"}"#)
        let again = try await accept("one")
        #expect(again.status == 200 && again.header("Idempotent-Replayed") == "true", "\(again.body)")
        #expect(
          again.json["note"].string == "Bring towels \(proposal)"
            && !again.body.contains("Zebra") == (proposal == offer))
        #expect(again.json["myRole"].string == (proposal == offer ? "host" : "guest"))
        #expect(try await accept("two").problem == "proposal-not-found")
      }
      // It is no way back in.
      try await ana.removeHost(zoe, from: event)
      let late = try await zoe.send("POST", "proposals/\(offer)/accept", headers: [("Idempotency-Key", "one")])
      #expect(late.status == 404, "\(late.body)")
    }
  }
}
