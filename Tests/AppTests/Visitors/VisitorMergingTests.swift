import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Visitors whose address an account verifies, and accounts whose address a visitor confirms.
@Suite struct VisitorMergingTests {
  private func merge(_ app: TestApp) async throws {
    while try await Visitor.mergeMarked(in: app.service, logger: .quiet) > 0 {}
  }

  /// Ana's event with a link, and the mails taken.
  private func gather(_ app: TestApp, capacity: Int? = nil) async throws -> (ana: Phone, event: String, link: String) {
    let ana = try await app.signUp("ana")
    let event = try await ana.createEvent("Swim", capacity: capacity)["id"].string ?? ""
    let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 5}"#)
    try await app.takeMails()
    return (ana, event, link.token)
  }

  /// Signs up, and returns the token that verifies the address.
  private func signUp(_ name: String, in app: TestApp) async throws -> (phone: Phone, token: String) {
    let phone = try await app.signUp(name, isVerified: false)
    return (phone, try await app.takeToken("mail-verify-email"))
  }

  @Test func `verifying an address makes its confirmed visitors guests, in their states and places in the line`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, capacity: 1)
      let first = try await app.visit(link, name: "First")
      let visit = try await app.confirmedVisit(link, plusOnes: 0, email: "ZOE@example.com")
      let last = try await app.visit(link, name: "Last")
      let unconfirmed = try await app.visit(link, name: "Other", "maybe", email: "zoe@example.com")
      let (zoe, token) = try await signUp("zoe", in: app)
      try await merge(app)
      #expect(try await visit.state == "waitlisted 0")
      let stale = try await zoe.stale {
        let verified = try await zoe.verify(token)
        #expect(verified.status == 204)
        try await merge(app)
      }
      #expect(stale.isSuperset(of: [.profile, .events, .invitations]))
      #expect(try await visit.page().status == 404)
      #expect(try await unconfirmed.state == "maybe 0")
      let shown = try await zoe.get("events/\(event)")
      #expect(shown["myStatus"].string == "waitlisted" && shown["counts"]["waitlisted"].int == 2)
      // Her place in the line is the one that she had as a visitor.
      try await first.act("withdraw")
      #expect(try await zoe.get("events/\(event)")["myStatus"].string == "going")
      #expect(try await last.state == "waitlisted 0")
      let guest = try await ana.get("events/\(event)/invitations")["items"].array.first { $0["id"].string == zoe.id }
      #expect(guest?["user"]["username"].string == "zoe" && guest?["name"].string == "Zoe")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `an address that an account has verified merges when the visitor confirms it`() async throws {
    try await TestApp.run { app in
      let (_, event, link) = try await gather(app)
      let (zoe, token) = try await signUp("zoe", in: app)
      #expect(try await zoe.verify(token).status == 204)
      let visit = try await app.confirmedVisit(link, plusOnes: 2, email: "Zoe@Example.com")
      try await merge(app)
      let shown = try await zoe.get("events/\(event)")
      #expect(shown["myStatus"].string == "going" && shown["myPlusOnes"].int == 2)
      #expect(try await visit.page().status == 404)
      // The number is more than the event allows, and stays as it is.
      try await zoe.answer("maybe", plusOnes: 2, to: event)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who merges after the event is over has it in the archive`() async throws {
    try await TestApp.run { app in
      let (_, event, link) = try await gather(app)
      let (zoe, token) = try await signUp("zoe", in: app)
      _ = try await app.confirmedVisit(link, email: "zoe@example.com")
      try await app.database.execute("UPDATE events SET archived_at = now()")
      #expect(try await zoe.verify(token).status == 204)
      try await merge(app)
      #expect(try await zoe.get("events")["items"].array.isEmpty)
      #expect(try await zoe.get("events?when=past")["items"].array.map { $0["id"].string } == [event])
      try await app.takeNotifications()
    }
  }

  @Test func `a mailed code, a reset and a provider also prove an address`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let (ana, event, link) = try await gather(app)
      for name in ["code", "reset", "new", "adopted"] {
        let visit = try await app.confirmedVisit(link, name: name, email: "\(name)@example.com")
        switch name {
        case "code":
          _ = try await app.signUp(name, isVerified: false)
          try await app.takeMails()
          #expect(
            try await app.confirmCode(byToken: try await app.takeCode(of: "\(name)@example.com").token).status == 200)
        case "reset":
          _ = try await app.signUp(name, isVerified: false)
          try await app.takeMails()
          _ = try await app.askForReset("\(name)@example.com")
          let token = try await app.takeToken("mail-reset-password")
          #expect(try await app.confirmReset(token, "another password").status == 204)
        default:
          if name == "adopted" {
            _ = try await app.send(
              "POST", "auth/register", body: #"{"username": "\#(name)", "email": "\#(name)@example.com"}"#)
          }
          let token = try identity.token(.google, name, IdentityServer.email("\(name)@example.com"))
          #expect(try await app.signIn(.google, token).status < 300)
        }
        try await merge(app)
        #expect(try await visit.page().status == 404, "\(name)")
      }
      #expect(try await ana.get("events/\(event)")["counts"]["going"].int == 4)
      #expect(try await app.value("SELECT count(*) FROM invitations") == 4)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `hosts, and users hidden from a host, are not guests, and their places become free`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, capacity: 1)
      let ben = try await app.signUp("ben")
      try await app.takeMails()
      let host = try await app.confirmedVisit(link, email: "ana@example.com")
      _ = try await ben.join(link)
      try await ben.answer("going", to: event)
      let code = try await app.takeCode(of: "ana@example.com")
      #expect(try await app.confirmCode(byToken: code.token).status == 200)
      try await merge(app)
      #expect(try await host.page().status == 404)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      try await ben.answer("declined", to: event)
      let (zoe, token) = try await signUp("zoe", in: app)
      let visit = try await app.confirmedVisit(link, email: "zoe@example.com")
      try await ben.answer("going", to: event)
      try await zoe.block(ana)
      #expect(try await zoe.verify(token).status == 204)
      try await merge(app)
      #expect(try await visit.page().status == 404)
      #expect(try await zoe.send("GET", "events/\(event)").status == 404)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor's answer fills an invitation, and is proposed if there is another answer`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (ana, event, link) = try await gather(app)
      let (zoe, token) = try await signUp("zoe", in: app)
      _ = try await zoe.verify(token)
      _ = try await zoe.join(link)
      for (own, theirs, isMerged) in [
        (nil, "going", true), ("going", "going", true), ("going", "declined", false), ("declined", "going", false),
        ("maybe", "going", false), ("going", "maybe", false),
      ] as [(String?, String, Bool)] {
        if let own { try await zoe.answer(own, to: event) }
        try await app.takeNotifications()
        let visit = try await app.confirmedVisit(link, theirs, email: "zoe@example.com")
        try await app.takeNotifications()
        try await merge(app)
        let told = try await app.takeNotifications()
        #expect(told.map(\.type) == [isMerged ? "answer-merged" : "answer-proposed"], "\(own ?? "-") \(theirs)")
        #expect(told.map(\.recipient) == [zoe.id] && told[0].payload["status"].string == theirs)
        #expect(try await zoe.get("events/\(event)")["myStatus"].string == (isMerged ? theirs : own))
        #expect(try await visit.page().status == (isMerged ? 404 : 200))
        let proposals = try await zoe.get("proposals")["items"].array
        #expect(proposals.count == (isMerged ? 0 : 1))
        guard let proposal = proposals.first else { continue }
        #expect(proposal["kind"].string == "answer" && proposal["status"].string == theirs)
        #expect(proposal["name"].string == "Zoe" && proposal["person"] == .null)
        #expect(told[0].payload["proposalId"] == proposal["id"])
        // The name was typed by anyone, and is not pushed.
        #expect(told[0].payload["message"].string?.contains("Zoe") == false)
        // Until the account decides, the page's holder cannot change what it decides about.
        #expect(try await visit.answer("maybe", expecting: 409).body.contains("decides about this answer"))
        try await zoe.decline(proposal: proposal["id"].string ?? "")
        #expect(try await visit.page().status == 404)
        #expect(try await zoe.get("events/\(event)")["myStatus"].string == own)
      }
      #expect(try await ana.get("events/\(event)/invitations")["items"].array.count == 1)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `an accepted answer keeps the counts, and frees surplus places`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, capacity: 4)
      let (zoe, token) = try await signUp("zoe", in: app)
      _ = try await zoe.join(link)
      try await zoe.answer("going", to: event)
      // She is going twice, with the newer answer for two.
      let visit = try await app.confirmedVisit(link, plusOnes: 1, email: "zoe@example.com")
      let waiting = try await app.visit(link, name: "Waiting", plusOnes: 1)
      #expect(try await waiting.state == "waitlisted 1")
      #expect(try await zoe.verify(token).status == 204)
      try await merge(app)
      #expect(try await zoe.get("events/\(event)")["myPlusOnes"].int == 0)
      #expect(try await waiting.state == "waitlisted 1")
      try await app.takeNotifications()
      let stale = try await ana.stale {
        let accepted = try await zoe.accept(proposal: try await zoe.proposals(about: event)[0])
        #expect(accepted.json["myPlusOnes"].int == 1)
      }
      #expect(stale == [.events, .notifications])
      #expect(try await visit.page().status == 404)
      #expect(try await waiting.state == "going 1")
      #expect(try await ana.get("events/\(event)")["counts"]["going"].int == 4)
      let told = try await app.takeNotifications()
      #expect(told.first { $0.type == "invitation-answered" }?.recipient == ana.id)
      try await app.expectConsistency()
    }
  }

  @Test func `a refused answer gives its places on`() async throws {
    try await TestApp.run { app in
      let (_, event, link) = try await gather(app, capacity: 3)
      let (zoe, token) = try await signUp("zoe", in: app)
      _ = try await zoe.join(link)
      try await zoe.answer("maybe", to: event)
      let visit = try await app.confirmedVisit(link, plusOnes: 1, email: "zoe@example.com")
      let waiting = try await app.visit(link, name: "Waiting", plusOnes: 1)
      #expect(try await zoe.verify(token).status == 204)
      try await merge(app)
      #expect(try await waiting.state == "waitlisted 1")
      try await zoe.decline(proposal: try await zoe.proposals(about: event)[0])
      #expect(try await waiting.state == "going 1")
      #expect(try await visit.state == "gone")
      #expect(try await zoe.get("events/\(event)")["myStatus"].string == "maybe")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `this was not me erases the answer, on a click by a reader of the mail`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, capacity: 1)
      let visit = try await app.visit(link, email: "zoe@example.com")
      let waiting = try await app.visit(link, name: "Waiting")
      let mailed = Visit(app: app, token: try #require(try await app.takeMails().compactMap(\.page).first))
      // The form's sender cannot confirm, and cannot say this for the reader.
      #expect(try await visit.page().body.contains("This was not me") == false)
      try await visit.act("not-me", expecting: 403)
      let page = try await mailed.page()
      #expect(page.body.contains("This was not me") && page.body.contains("Confirm my address"))
      #expect(try await visit.state == "going 0")
      let done = try await mailed.act("not-me", expecting: 200)
      #expect(done.body.contains("has been erased"))
      #expect(try await visit.state == "gone")
      #expect(try await waiting.state == "going 0")
      try await mailed.act("not-me", expecting: 404)
      #expect(try await ana.get("events/\(event)")["counts"]["going"].int == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `an answer is accepted, refused, withdrawn or erased, never twice, and nothing is oversold`() async throws
  {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, _, _) = try await gather(app)
      for round in 0..<10 {
        let event = try await ana.createEvent("Round \(round)", capacity: 2)["id"].string ?? ""
        let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 1}"#)
        let (zoe, token) = try await signUp("zoe\(round)", in: app)
        _ = try await zoe.join(link.token)
        try await zoe.answer("maybe", to: event)
        let visit = try await app.confirmedVisit(link.token, plusOnes: 1, email: "zoe\(round)@example.com")
        _ = try await app.visit(link.token, name: "Waiting", plusOnes: 1)
        _ = try await zoe.verify(token)
        try await merge(app)
        let proposal = try await zoe.proposals(about: event)[0]
        let statuses = try await app.race(4) { index in
          switch index {
          case 0: try await zoe.send("POST", "proposals/\(proposal)/accept")
          case 1: try await zoe.send("POST", "proposals/\(proposal)/decline")
          case 2: try await ana.send("DELETE", "events/\(event)/invitations/\(visit.id)")
          default: try await ana.send("DELETE", "events/\(event)/invitations/\(zoe.id)")
          }
        }
        #expect(Set(statuses.keys).isSubset(of: [200, 204, 404]), "\(statuses)")
        #expect(try await app.value("SELECT count(*) FROM visitors WHERE id = \(visit.id)") == 0)
        #expect(try await app.value("SELECT count(*) FROM events WHERE going_count > capacity") == 0)
        try await app.expectConsistency()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `confirming and verifying at once merges exactly once`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (_, _, link) = try await gather(app)
      for round in 0..<10 {
        let (zoe, token) = try await signUp("zoe\(round)", in: app)
        let visit = try await app.visit(link, email: "zoe\(round)@example.com")
        let mailed = Visit(app: app, token: try #require(try await app.takeMails().compactMap(\.page).first))
        async let verified = app.verify(token)
        async let confirmed = app.submit(mailed.path, ["do": "confirm"])
        let (verification, confirmation) = (try await verified, try await confirmed)
        #expect(verification.status == 204 && confirmation.status == 303)
        // Two workers.
        async let one: Void = merge(app)
        async let other: Void = merge(app)
        _ = try await (one, other)
        #expect(try await visit.page().status == 404, "\(round)")
        #expect(try await app.value("SELECT count(*) FROM invitations WHERE user_id = \(zoe.userID)") == 1)
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `merging at events whose hosts block, leave and change neither deadlocks nor crosses a block`()
    async throws
  {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, _, _) = try await gather(app)
      for round in 0..<6 {
        let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
        let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
        let (zoe, token) = try await signUp("zoe\(round)", in: app)
        _ = try await app.confirmedVisit(link.token, email: "zoe\(round)@example.com")
        #expect(try await zoe.verify(token).status == 204)
        async let blocked = zoe.send("PUT", "blocks/\(ana.id)")
        async let merged: Void = merge(app)
        _ = try await (blocked.status, merged)
        try await merge(app)
        #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
        #expect(try await app.value("SELECT count(*) FROM invitations WHERE user_id = \(zoe.userID)") == 0)
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `workers killed while they merge neither lose nor double an answer`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var links: [String] = []
      for number in 0..<5 {
        let event = try await ana.createEvent("Event \(number)", capacity: 3)["id"].string ?? ""
        links.append(try await ana.createLink(to: event, #"{"kind": "answer"}"#).token)
      }
      let people = 24
      for person in 0..<people {
        for link in links { _ = try await app.visit(link, name: "P\(person)", email: "p\(person)@x.org") }
      }
      let before = try await app.database.rows(
        """
        SELECT event_id, name, status, answered_at FROM event_guests WHERE user_id IS NULL
        ORDER BY event_id, name
        """
      ).map { "\(try $0["event_id"] as Event.ID) \(try $0["name"] as String) \(try $0["status"] as String)" }
      // Each has confirmed, and has an account with the address.
      try await app.database.batch(
        """
        INSERT INTO users (id, username, display_name, email, email_verified_at)
        SELECT uuid_v7(), 'person' || n, 'P' || n, 'p' || n || '@x.org', now() FROM generate_series(0, \(people - 1)) AS n
        """,
        "INSERT INTO user_stamps (user_id) SELECT id FROM users ON CONFLICT DO NOTHING",
        """
        UPDATE visitors AS v SET confirmed_at = now(), lapses_at = NULL, merges_into = u.id
        FROM users AS u WHERE u.email = v.email
        """)
      // Each merge takes a while, so that kills hit merges.
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            PERFORM pg_sleep(0.01);
            RETURN NULL;
          END
          $$;
          CREATE TRIGGER slow AFTER DELETE ON visitors FOR EACH ROW EXECUTE FUNCTION slow();
          """)
      }
      func left() async throws -> Int { try await app.value("SELECT count(*) FROM visitors") ?? 0 }
      var random = SeededRandom(seed: 7)
      var (kills, killsBetween) = (0, 0)
      let environment = Muster.environment(app.databaseURL)
      while case let before = try await left(), before > 0 {
        let worker = try await Program(Program.path("muster"), ["worker"], environment: environment)
        defer { worker.signal(SIGKILL) }
        try await worker.waitForOutput("working", within: .seconds(120))
        // The last one may finish.
        try await eventually { try await left() < (kills < 8 ? before : 1) }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...60, using: &random)))
        worker.signal(SIGKILL)
        _ = try await worker.exitStatus()
        kills += 1
        if try await left() > 0 { killsBetween += 1 }
        try await app.expectCounts()
      }
      #expect(killsBetween >= 3)
      let after = try await app.database.rows(
        """
        SELECT i.event_id, u.display_name AS name, i.status, i.answered_at
        FROM invitations AS i JOIN users AS u ON u.id = i.user_id
        ORDER BY i.event_id, u.display_name
        """
      ).map { "\(try $0["event_id"] as Event.ID) \(try $0["name"] as String) \(try $0["status"] as String)" }
      #expect(after == before && after.count == people * links.count)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
