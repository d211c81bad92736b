import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The traces of visitors who are removed or merged, and requests that come too late.
@Suite struct VisitorForgettingTests {
  /// How many notices have a visitor's id, wherever they are.
  private func named(_ visit: Visit, in app: TestApp) async throws -> Int {
    try await app.value(
      """
      SELECT (SELECT count(*) FROM notifications WHERE payload->>'guestId' = \(visit.id.description))
        + (SELECT count(*) FROM notification_queue WHERE payload->>'guestId' = \(visit.id.description))
        + (SELECT count(*) FROM deliveries WHERE payload->>'guestId' = \(visit.id.description))
      """) ?? 0
  }

  /// Ana's event with a link.
  private func gather(_ app: TestApp, _ link: String = #"{"kind": "answer"}"#) async throws -> (
    ana: Phone, event: String, link: (id: String, token: String)
  ) {
    let ana = try await app.signUp("ana")
    let event = try await ana.createEvent("Swim")["id"].string ?? ""
    return (ana, event, try await ana.createLink(to: event, link))
  }

  @Test func `removing a visitor deletes the notices with their name, and no others`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app)
      let zoe = try await app.visit(link.token)
      try await app.endMinuteOfVisitors()
      let yan = try await app.visit(link.token, name: "Yan")
      try await app.fanOut()
      // One is in the inbox, and one waits.
      try await zoe.answer("maybe")
      #expect(try await named(zoe, in: app) >= 2)
      let stale = try await ana.stale { _ = try await ana.send("DELETE", "events/\(event)/invitations/\(zoe.id)") }
      #expect(stale.contains(.notifications))
      #expect(try await named(zoe, in: app) == 0)
      #expect(try await named(yan, in: app) == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who lapses leaves no name behind, in inboxes, deliveries or the queue`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app)
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      try await ana.addHost(cleo, to: event)
      for phone in [ana, cleo] { try await phone.addDevice("\(phone.username)-phone") }
      let zoe = try await app.visit(link.token, name: "Zoe Zebra", email: "zoe@x.org")
      // In inboxes, and on the way to devices.
      while try await FanOut.step(in: app.service).notices > 0 {}
      #expect(try await named(zoe, in: app) == 4)
      // In the queue, together with another visitor.
      try await app.visit(link.token, name: "Yan")
      try await zoe.answer("maybe")
      try await app.database.execute("UPDATE visitor_news SET due_at = now() - interval '1 second'")
      #expect(try await app.database.change { try await VisitorNews.tellNext(in: $0) })
      #expect(try await app.value("SELECT count(*) FROM notification_queue WHERE payload::text LIKE '%Zebra%'") == 1)
      try await app.database.execute("UPDATE visitors SET lapses_at = now() WHERE id = \(zoe.id)")
      let stamps = try await ana.refreshLists()
      _ = try await app.database.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
      #expect(try await ana.stale(stamps).contains(.notifications))
      for table in ["visitors", "notifications", "notification_queue", "deliveries", "mails"] {
        let left: Int? = try await app.value(
          "SELECT count(*) FROM \(unescaped: table) AS t WHERE t::text ~ 'Zebra|zoe@x.org'")
        #expect(left == 0, "\(table)")
      }
      // The other visitor's name stays in the notice.
      let kept: Int? = try await app.value("SELECT count(*) FROM notification_queue WHERE payload::text LIKE '%Yan%'")
      #expect(kept == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `notices are found by their guest through an index`() async throws {
    try await TestApp.run { app in
      for (table, index) in [
        ("notifications", "notifications_default_guest_id_idx"),
        ("notification_queue", "notification_queue_by_guest"), ("deliveries", "deliveries_by_guest"),
      ] {
        let plan: [String] = try await app.database.transaction { transaction in
          _ = try await transaction.rows("SET LOCAL enable_seqscan = off")
          return try await transaction.rows(
            "EXPLAIN SELECT 1 FROM \(unescaped: table) WHERE guest_id = ANY(ARRAY[uuid_v7()])"
          ).map { try $0[0] }
        }
        #expect(plan.contains { $0.contains(index) } && !plan.contains { $0.contains("Seq Scan") }, "\(plan)")
      }
    }
  }

  @Test func `a delivery that was being sent when its visitor went is dropped`() async throws {
    try await TestApp.run { app in
      let (ana, _, link) = try await gather(app)
      try await ana.addDevice("anas-phone")
      let zoe = try await app.visit(link.token)
      try await app.fanOut()
      try await app.database.execute(
        "UPDATE deliveries SET lease = uuid_v7(), worker_id = uuid_v7(), leased_until = now() - interval '1 minute'")
      try await zoe.act("erase", expecting: 200)
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 1)
      try await app.database.execute("UPDATE deliveries SET lease = NULL, worker_id = NULL, leased_until = NULL")
      let sender = Recorder()
      let worker = NotificationWorker(app.dependencies, sender: sender, mailer: NoMailer(), concurrency: 4)
      try await worker.runOnce()
      #expect(sender.received.isEmpty)
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a replay names no visitor who is gone, and has no second effect`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app)
      let zoe = try await app.visit(link.token, name: "Zoe Zebra")
      try await app.visit(link.token, name: "Yan")
      let key = [("Idempotency-Key", "one")]
      func edit() async throws -> APIResponse {
        try await ana.send("PATCH", "events/\(event)", #"{"note": "Bring towels"}"#, headers: key)
      }
      #expect(try await edit().body.contains("Zoe Zebra"))
      let joining = try await app.signUp("ben")
      func join() async throws -> APIResponse {
        try await joining.send("POST", "links/\(link.token)/join", headers: key)
      }
      #expect(try await join().body.contains("Zoe Zebra"))
      try await zoe.act("erase", expecting: 200)
      try await ana.edit(event, #"{"note": "Bring nothing"}"#)
      for again in [try await edit(), try await join()] {
        #expect(again.status == 200 && again.header("Idempotent-Replayed") == "true", "\(again.body)")
        #expect(!again.body.contains("Zebra") && again.body.contains("Yan"))
        // It has the event as it is, not a second effect.
        #expect(again.json["note"].string == "Bring nothing")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `joining again with the same key, after the link was revoked, gets the event as it is`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app)
      let zoe = try await app.visit(link.token, name: "Zoe Zebra")
      let (ben, cleo) = (try await app.signUp("ben"), try await app.signUp("cleo"))
      try await app.befriend(ana, cleo)
      try await ana.invite([cleo], to: event)
      func join(_ phone: Phone) async throws -> APIResponse {
        try await phone.send("POST", "links/\(link.token)/join", headers: [("Idempotency-Key", "one")])
      }
      // His response is stored, and forgotten with the visitor. Hers is not: she was a guest already.
      for phone in [ben, cleo] { #expect(try await join(phone).status == 200) }
      try await zoe.act("erase", expecting: 200)
      #expect(try await ana.send("DELETE", "events/\(event)/links/\(link.id)").status == 204)
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys WHERE sealed_response IS NULL") == 2)
      for phone in [ben, cleo] {
        let again = try await join(phone)
        #expect(again.status == 200 && again.header("Idempotent-Replayed") == "true", "\(again.body)")
        #expect(again.json["id"].string == event && again.header("ETag") != nil && !again.body.contains("Zebra"))
      }
      // A user whom a host has removed since does not see it, and another key is another request.
      try await ana.withdraw(ben, from: event)
      #expect(try await join(ben).status == 404)
      #expect(try await cleo.send("POST", "links/\(link.token)/join").problem == "link-not-found")
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who is erased or removed gives the link's place back, unless the address is confirmed`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, #"{"kind": "answer", "maxGuests": 1}"#)
      func joined() async throws -> Int? { try await ana.get("events/\(event)/links/\(link.id)")["joined"].int }
      for end in ["erased", "not me", "removed", "with the link's others"] {
        let full = [
          "form": try await app.formToken(of: link.token), "name": "Yan", "answer": "going", "email": "yan@x.org",
        ]
        let visit = try await app.visit(link.token, email: "zoe@x.org")
        let page = try await app.takeMails().compactMap(\.page).first
        #expect(try await joined() == 1, "\(end)")
        #expect(try await app.submit("/e/\(link.token)", full).status == 409, "\(end)")
        switch end {
        case "erased": try await visit.act("erase", expecting: 200)
        case "not me":
          try await Visit(app: app, token: try #require(page)).act("not-me", expecting: 200)
        case "removed":
          #expect(try await ana.send("DELETE", "events/\(event)/invitations/\(visit.id)").status == 200)
        default:
          let path = "events/\(event)/links/\(link.id)?visitors=remove"
          #expect(try await ana.send("DELETE", path).status == 204)
          #expect(try await visit.state == "gone")
          continue
        }
        #expect(try await joined() == 0, "\(end)")
        try await app.database.execute("DELETE FROM mail_attempts")
      }
      // One that its reader has confirmed has used it up.
      let other = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 1}"#)
      let confirmed = try await app.confirmedVisit(other.token, email: "xia@x.org")
      try await confirmed.act("erase", expecting: 200)
      #expect(try await ana.get("events/\(event)/links/\(other.id)")["joined"].int == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `a delivery about several visitors that is being sent loses the names of those who go`() async throws {
    try await TestApp.run { app in
      let (ana, _, link) = try await gather(app)
      try await ana.addDevice("anas-phone")
      try await app.visit(link.token, name: "First")
      let zoe = try await app.visit(link.token, name: "Zoe Zebra")
      try await app.visit(link.token, name: "Yan")
      try await app.fanOut()
      let named: SQL = "SELECT count(*) FROM deliveries WHERE payload::text LIKE '%Zebra%'"
      #expect(try await app.value(named) == 1)
      try await app.database.execute(
        "UPDATE deliveries SET lease = uuid_v7(), worker_id = uuid_v7(), leased_until = now() + interval '1 minute'")
      try await zoe.act("erase", expecting: 200)
      #expect(try await app.value(named) == 0)
      #expect(try await app.value("SELECT count(*) FROM deliveries WHERE payload::text LIKE '%Yan%'") == 1)
      // What the next attempt sends.
      try await app.database.execute("UPDATE deliveries SET lease = NULL, worker_id = NULL, leased_until = NULL")
      let sender = Recorder()
      try await NotificationWorker(app.dependencies, sender: sender, mailer: NoMailer(), concurrency: 4).runOnce()
      let sent = sender.received.map { "\($0)" }
      #expect(!sent.isEmpty && sent.allSatisfy { !$0.contains("Zebra") }, "\(sent)")
      try await app.takeNotifications()
    }
  }

  @Test func `a form whose visitor is gone brings no one back`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app)
      for end in ["erased", "removed", "lapsed"] {
        let fields = [
          "form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going", "email": "\(end)@x.org",
        ]
        let first = try await app.submit("/e/\(link.token)", fields)
        let visit = Visit(app: app, token: try app.visitorToken(in: first))
        switch end {
        case "erased": try await visit.act("erase", expecting: 200)
        case "removed": _ = try await ana.send("DELETE", "events/\(event)/invitations/\(visit.id)")
        default:
          try await app.database.execute("UPDATE visitors SET lapses_at = now()")
          _ = try await app.database.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
        }
        let again = try await app.submit("/e/\(link.token)", fields)
        #expect(again.status == 303 && again.header("Location") == first.header("Location"), "\(end)")
        #expect(try await visit.page().status == 404)
        #expect(try await app.value("SELECT count(*) FROM visitors") == 0, "\(end)")
      }
      // Remembered until the form has expired.
      #expect(try await FormTokens.purge(atMost: 10, in: app.database) == 0)
      try await app.database.execute("UPDATE spent_forms SET expires_at = expires_at - interval '24 hours'")
      #expect(try await FormTokens.purge(atMost: 10, in: app.database) == 3)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `forms that another site's page sends are refused, and others are not`() async throws {
    try await TestApp.run { app in
      let (_, _, link) = try await gather(app)
      let fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going"]
      let foreign = [("Sec-Fetch-Site", "cross-site")]
      #expect(try await app.submit("/e/\(link.token)", fields, headers: foreign).status == 403)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      let first = try await app.submit("/e/\(link.token)", fields, headers: [("Sec-Fetch-Site", "same-origin")])
      let visit = Visit(app: app, token: try app.visitorToken(in: first))
      let token = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")))
      let before = try await app.contents()
      for path in [visit.path, "\(visit.path)/unsubscribe", "/m/\(token)", "/verify/x", "/undo/x"] {
        for value in ["cross-site", "Cross-Site"] {
          let refused = try await app.submit(path, ["do": "erase"], headers: [("Sec-Fetch-Site", value)])
          #expect(refused.status == 403 && refused.body.contains("did not come from our page"), "\(path)")
        }
      }
      #expect(try await app.contents() == before)
      for value in ["same-origin", "same-site", "none"] {
        #expect(
          try await app.submit(visit.path, ["do": "answer", "answer": "maybe"], headers: [("Sec-Fetch-Site", value)])
            .status == 303)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `deleting an account erases its visitors who are not merged yet`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, #"{"kind": "answer", "approval": true}"#)
      let ben = try await app.signUp("ben")
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(ben.userID)")
      try await app.takeMails()
      // One waits for approval, and one would be merged next.
      let pending = try await app.confirmedVisit(link.token, name: "Not Ben", email: "ben@example.com")
      let party = try await ana.createEvent("Party", capacity: 1)["id"].string ?? ""
      let other = try await ana.createLink(to: party, #"{"kind": "answer"}"#)
      let going = try await app.confirmedVisit(other.token, name: "Ben", email: "ben@example.com")
      let waiting = try await app.visit(other.token, name: "Yan")
      try await app.fanOut()
      try await ben.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE email IS NOT NULL") == 0)
      for visit in [pending, going] {
        #expect(try await named(visit, in: app) == 0)
        #expect(try await app.send("GET", visit.path).status == 404)
      }
      #expect(try await app.value("SELECT status FROM visitors WHERE id = \(waiting.id)") == "going")
      #expect(try await ana.get("events/\(event)")["counts"]["pending"].int == 0)
      try await app.takeNotifications()
      try await app.expectCounts()
    }
  }

  @Test func `merging a visitor deletes the notices with the name in the form`() async throws {
    try await TestApp.run { app in
      let (_, event, link) = try await gather(app)
      let ben = try await app.signUp("ben")
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(ben.userID)")
      try await app.takeMails()
      let visit = try await app.confirmedVisit(link.token, name: "Not Ben", email: "ben@example.com")
      try await app.fanOut()
      #expect(try await named(visit, in: app) == 1)
      #expect(try await Visitor.mergeMarked(in: app.service, logger: .quiet) == 1)
      #expect(try await named(visit, in: app) == 0)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who waits for approval is merged after it, with the wanted answer`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, #"{"kind": "answer", "approval": true, "maxPlusOnes": 2}"#)
      let ben = try await app.signUp("ben")
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(ben.userID)")
      try await app.takeMails()
      let visit = try await app.confirmedVisit(link.token, plusOnes: 2, email: "ben@example.com")
      #expect(try await Visitor.mergeMarked(in: app.service, logger: .quiet) == 0)
      #expect(try await visit.state == "pending 2")
      #expect(try await ana.send("POST", "events/\(event)/invitations/\(visit.id)/approve").status == 200)
      #expect(try await Visitor.mergeMarked(in: app.service, logger: .quiet) == 1)
      let shown = try await ben.get("events/\(event)")
      #expect(shown["myStatus"].string == "going" && shown["myPlusOnes"].int == 2)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a worker that comes late with an old mark leaves the mark of another account`() async throws {
    try await TestApp.run { app in
      let (_, event, link) = try await gather(app)
      let (ben, cleo) = (try await app.signUp("ben"), try await app.signUp("cleo"))
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(cleo.userID)")
      try await app.takeMails()
      let visit = try await app.confirmedVisit(link.token, email: "cleo@example.com")
      let id = try #require(Event.ID(event))
      try await app.service.change { try await Visitor.merge(visit.id, at: id, into: ben.userID, in: $0) }
      let mark: User.ID? = try await app.value("SELECT merges_into FROM visitors WHERE id = \(visit.id)")
      #expect(mark == cleo.userID)
      #expect(try await Visitor.mergeMarked(in: app.service, logger: .quiet) == 1)
      #expect(try await cleo.get("events/\(event)")["myStatus"].string == "going")
      try await app.takeNotifications()
    }
  }

  @Test func `claiming locks an account's visitors in the order of their ids`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (_, _, link) = try await gather(app)
      let ben = try await app.signUp("ben")
      try await app.takeMails()
      var ids: [Guest.ID] = []
      for _ in 0..<3 { ids.append(try await app.confirmedVisit(link.token, email: "ben@example.com").id) }
      ids.sort { $0.description < $1.description }
      // In the table, the one with the lowest id is last.
      try await app.database.execute("UPDATE visitors SET name = name WHERE id = \(ids[0])")
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(ben.userID)")
      let claiming = try await app.database.transaction { holder -> Task<Void, any Error> in
        _ = try await holder.rows("SELECT 1 FROM visitors WHERE id = \(ids[0]) FOR UPDATE")
        // Detached: in this task, the transaction is open.
        let claiming = Task.detached {
          try await app.service.change { try await Visitor.claim(for: ben.userID, in: $0) }
        }
        try await app.waitForLocks(1)
        // It has locked no later one.
        let free = try await holder.rows("SELECT id FROM visitors ORDER BY id FOR UPDATE SKIP LOCKED")
        #expect(free.count == 3)
        return claiming
      }
      try await claiming.value
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE merges_into = \(ben.userID)") == 3)
      try await app.takeNotifications()
    }
  }

  @Test func `a form that meets the end of its link, or of its visitor, gets a page`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (_, _, link) = try await gather(app)
      let unknown = try await app.send("GET", "/g/wrong").body
      let visit = try await app.visit(link.token)
      let form = try await app.formToken(of: link.token)
      /// Sends a form that waits for the event until a statement has committed.
      func send(_ path: String, _ fields: [String: String], while statement: SQL) async throws -> APIResponse {
        try await app.database.transaction { holder -> Task<APIResponse, any Error> in
          _ = try await holder.rows("SELECT 1 FROM events FOR UPDATE")
          let sending = Task { try await app.submit(path, fields) }
          try await app.waitForLocks(1)
          _ = try await holder.rows(statement)
          return sending
        }.value
      }
      let fields = ["form": form, "name": "Yan", "answer": "going"]
      let revoked = try await send("/e/\(link.token)", fields, while: "DELETE FROM share_links")
      #expect(revoked.status == 404 && revoked.body == unknown)
      let answer = ["do": "answer", "answer": "maybe"]
      let late = try await send(visit.path, answer, while: "DELETE FROM visitors")
      #expect(late.status == 404 && late.body == unknown)
      try await app.database.execute("UPDATE events SET going_count = 0, visitor_count = 0")
      try await app.takeNotifications()
    }
  }

  @Test func `a form that is sent again after a rotation of keys leads to the page that it made`() async throws {
    let (new, old) = (SigningKeys.generate(), SigningKeys.generate())
    try await TestApp.run(["MUSTER_REFRESH_TOKEN_KEYS": "\(new),\(old)"]) { app in
      let (_, _, link) = try await gather(app)
      let fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going"]
      #expect(try await app.submit("/e/\(link.token)", fields).status == 303)
      // As if the visitor had come before the rotation.
      let kid = String(old.prefix { $0 != ":" })
      try await app.database.execute("UPDATE visitors SET kid = \(kid)")
      let again = try await app.submit("/e/\(link.token)", fields)
      #expect(again.status == 303)
      let visit = Visit(app: app, token: try app.visitorToken(in: again))
      #expect(try await visit.page().body.contains("<bdi>Zoe</bdi>"))
      try await app.takeNotifications()
    }
  }

  @Test func `the form of the page offers no more people than the rules allow`() async throws {
    try await TestApp.run { app in
      let (ana, event, link) = try await gather(app, #"{"kind": "answer", "maxPlusOnes": 3}"#)
      let visit = try await app.visit(link.token, plusOnes: 2)
      _ = try await ana.send("PATCH", "events/\(event)/links/\(link.id)", #"{"maxPlusOnes": 1}"#)
      // The visitor may keep what the link has allowed, until they decline.
      #expect(try await visit.page().body.contains("At most 2."))
      try await visit.act("withdraw")
      let page = try await visit.page().body
      #expect(page.contains("At most 1.") && page.contains("max=\"1\" value=\"1\""))
      #expect(try await visit.answer("going", plusOnes: 2, expecting: 422).body.contains("from 0 to 1"))
      try await visit.answer("going", plusOnes: 1)
      #expect(try await visit.state == "going 1")
      try await app.takeNotifications()
    }
  }

  @Test func `one-click unsubscribing has the limit of files, because providers send it from few addresses`()
    async throws
  {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let (_, _, link) = try await gather(app)
      let visit = try await app.visit(link.token)
      let statuses = try await app.race(RateLimit.forms.burst + 20) { _ in
        try await app.submit("\(visit.path)/unsubscribe", ["List-Unsubscribe": "One-Click"])
      }
      #expect(statuses == [200: RateLimit.forms.burst + 20])
      try await app.takeNotifications()
    }
  }
}
