import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Answering on the page of a share link.
@Suite struct VisitorFormTests {
  @Test func `an answer by the form counts at once, leads to the visitor's page, and notifies the hosts`() async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim", capacity: 3)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 2, "shows": "names"}"#)
      let page = try await app.send("GET", "/e/\(link.token)")
      #expect(page.status == 200 && page.body.contains("At most 2") && page.body.contains("(optional)"))
      let visit = try await app.visit(link.token, name: "  Zoe ", plusOnes: 1)
      let entry = try await visit.entry(at: event, seenBy: ana)
      #expect(entry["user"] == .null && entry["name"].string == "Zoe" && entry["status"].string == "going")
      #expect(entry["plusOnes"].int == 1 && entry["answeredAt"].string != nil)
      let shown = try await ana.get("events/\(event)")
      #expect(shown["counts"]["going"].int == 2 && shown["participants"][0]["name"].string == "Zoe")
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["joined"].int == 1)
      let received = try await app.takeNotifications()
      #expect(received.count == 1 && received[0] == ("guest-answered", ana))
      #expect(received[0].payload["guestId"].string == visit.id.description && received[0].payload["userId"] == .null)
      #expect(received[0].payload["message"].string == "Zoe is going to “Swim”, with 1 other.")
      let own = try await visit.page()
      #expect(own.status == 200 && own.body.contains("You are going, with 1 other."), "\(own.body)")
      #expect(own.header("Set-Cookie") == nil && own.header("Referrer-Policy") == "no-referrer")
      #expect(own.header("Cache-Control") == "no-store")
      #expect(own.header("Content-Security-Policy")?.contains("form-action 'self'") == true)
      #expect(try await app.send("GET", "/e/\(link.token)").body.contains("<bdi>Zoe</bdi>"))
      // The line is the same for everyone.
      let other = try await app.visit(link.token, name: "Yan", plusOnes: 1)
      #expect(try await other.state == "waitlisted 1")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a form that is sent twice, or by many at once, is one answer`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 1}"#)
      let fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going"]
      let responses = try await withThrowingTaskGroup(of: APIResponse.self) { group in
        for _ in 0..<8 { group.addTask { try await app.submit("/e/\(link.token)", fields) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(responses.allSatisfy { $0.status == 303 } && Set(responses.map { $0.header("Location") }).count == 1)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 1)
      // The same later, when the link admits no more guests.
      #expect(try await app.submit("/e/\(link.token)", fields).header("Location") == responses[0].header("Location"))
      #expect(try await app.takeNotifications().count == 1)
      try await app.expectConsistency()
    }
  }

  @Test func `a form that is refused comes back filled in, with each error at its field`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 2, "email": "required"}"#)
      let form = try await app.formToken(of: link.token)
      let bad = try await app.submit(
        "/e/\(link.token)",
        ["form": form, "name": "<Zoe>\u{202e}", "answer": "perhaps", "plusOnes": "3", "email": "zoe"])
      #expect(bad.status == 422 && bad.header("Content-Type") == "text/html; charset=utf-8")
      for field in ["name", "plusOnes", "email"] {
        #expect(bad.body.contains("id=\"\(field)-error\"") && bad.body.contains("href=\"#\(field)\""), "\(field)")
        #expect(bad.body.contains(try Regex("<input id=\"\(field)\"[^>]*aria-invalid=\"true\"")), "\(field)")
      }
      #expect(bad.body.contains("id=\"answer-error\"") && bad.body.contains("role=\"alert\""))
      #expect(bad.body.contains("Choose one of the three answers."))
      #expect(bad.body.contains("<title>Error: ") && bad.body.contains("value=\"&lt;Zoe&gt;\""))
      #expect(bad.body.contains("value=\"\(form)\""))
      let missing = try await app.submit("/e/\(link.token)", ["form": form])
      #expect(missing.status == 422 && missing.body.contains("Your name is required."))
      #expect(missing.body.contains("The e-mail address is required."))
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      // The host may have changed the link meanwhile.
      _ = try await ana.send("PATCH", "events/\(event)/links/\(link.id)", #"{"maxPlusOnes": 0}"#)
      let changed = try await app.submit(
        "/e/\(link.token)", ["form": form, "name": "Zoe", "answer": "going", "plusOnes": "2", "email": "zoe@x.org"])
      #expect(changed.status == 422 && changed.body.contains("value=\"zoe@x.org\""))
    }
  }

  @Test func `a link admits a limited number of visitors at once`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let other = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let subject = RateLimits.Subject.link(try #require(ShareLink.ID(link.id)))
      for _ in 0..<RateLimit.visitors.burst { _ = app.dependencies.rateLimits.take(.visitors, of: subject) }
      let form = try await app.formToken(of: link.token)
      let refused = try await app.submit("/e/\(link.token)", ["form": form, "name": "Zoe", "answer": "going"])
      #expect(refused.status == 429 && refused.header("Retry-After") != nil)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      // Forms that are not complete use up nothing, and another link has its own limit.
      let incomplete = try await app.submit("/e/\(link.token)", ["form": form, "answer": "going"])
      #expect(incomplete.status == 422)
      _ = try await app.visit(other.token)
      try await app.takeNotifications()
    }
  }

  @Test func `an expired form comes back filled in, and a made-up one is none`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let other = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let forms = app.dependencies.visitorTokens.forms
      let id = try #require(ShareLink.ID(link.id))
      let old = try #require(forms.token(for: id, at: .now().adding(seconds: -FormTokens.lifetime - 5)))
      let almost = try #require(forms.token(for: id, at: .now().adding(seconds: -FormTokens.lifetime + 60)))
      for wrong in [old, "", "mf1.x.y.z", try await app.formToken(of: other.token)] {
        let page = try await app.submit("/e/\(link.token)", ["form": wrong, "name": "Zoe", "answer": "maybe"])
        #expect(page.status == 422 && page.body.contains("value=\"Zoe\""), "\(page.body)")
        #expect(page.body.contains("open for too long") && page.body.contains("value=\"maybe\" required checked"))
        let new = String(try #require(page.body.firstMatch(of: /name="form" value="([^"]+)"/)).output.1)
        #expect(new != wrong && forms.read(new)?.link == id)
      }
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      let late = try await app.submit("/e/\(link.token)", ["form": almost, "name": "Zoe", "answer": "maybe"])
      #expect(late.status == 303)
      try await app.takeNotifications()
    }
  }

  @Test func `a program that fills in the trap gets a page that does not exist, and writes nothing`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let fields = ["form": try await app.formToken(of: link.token), "name": "Bot", "answer": "going", "website": "x"]
      let trapped = try await app.submit("/e/\(link.token)", fields)
      #expect(trapped.status == 303)
      let visit = Visit(app: app, token: try app.visitorToken(in: trapped))
      #expect(try await visit.page().status == 404)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
    }
  }

  @Test func `bodies that are not forms are refused before anything is read`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let form = [("Content-Type", "application/x-www-form-urlencoded")]
      let path = "/e/\(link.token)"
      #expect(try await app.send("POST", path, body: "{}").status == 415)
      #expect(
        try await app.send("POST", path, body: String(repeating: "a", count: 20_000), headers: form).status == 413)
      for body in [
        "name=%zz", "name=%00", "name=%ff", "name=a&name=b", "name=%",
        (0...40).map { "f\($0)=" }.joined(separator: "&"),
      ] {
        #expect(try await app.send("POST", path, body: body, headers: form).problem == "malformed-body", "\(body)")
      }
      // A run of combining marks costs no more than its bytes.
      let marks = "name=" + String(repeating: "%CC%81", count: 2000)
      #expect(try await app.send("POST", path, body: marks, headers: form).status == 422)
      #expect(try await app.send("POST", "/e/wrong", body: "name=Zoe", headers: form).status == 404)
    }
  }

  @Test func `links, events and their deadlines each end the form, and limits refuse it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 1}"#)
      let view = try await ana.createLink(to: event, #"{"kind": "view"}"#)
      #expect(try await !app.send("GET", "/e/\(view.token)").body.contains("<form"))
      let fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going"]
      func refusal(_ setup: SQL, _ undo: SQL, sourceLocation: SourceLocation = #_sourceLocation) async throws
        -> APIResponse
      {
        try await app.database.execute(setup)
        let response = try await app.submit("/e/\(link.token)", fields)
        let page = try await app.send("GET", "/e/\(link.token)")
        #expect(!page.body.contains("<form"), sourceLocation: sourceLocation)
        try await app.database.execute(undo)
        return response
      }
      let late = try await refusal(
        "UPDATE events SET answer_by = now() - interval '1 hour'", "UPDATE events SET answer_by = NULL")
      #expect(late.status == 409 && late.body.contains("The deadline for answers has passed."))
      let over = try await refusal(
        "UPDATE events SET live_until = now() + interval '1 hour'",
        "UPDATE events SET live_until = now() + interval '9 days'")
      #expect(over.status == 409 && over.body.contains("The event is over."))
      let expired = try await refusal(
        "UPDATE share_links SET expires_at = now() - interval '1 hour'", "UPDATE share_links SET expires_at = NULL")
      #expect(expired.status == 410 && !expired.body.contains("Swim"))
      let viewed = try await refusal(
        "UPDATE share_links SET kind = 'view'", "UPDATE share_links SET kind = 'answer' WHERE max_guests = 1")
      #expect(viewed.status == 409)
      let cancelled = try await refusal(
        "UPDATE events SET status = 'cancelled'", "UPDATE events SET status = 'scheduled'")
      #expect(cancelled.status == 409)
      // Joins and visitors count together.
      _ = try await app.signUp("ben").join(link.token)
      let full = try await app.submit("/e/\(link.token)", fields)
      #expect(full.status == 409 && full.body.contains("No more guests"))
      try await app.database.execute("UPDATE share_links SET max_guests = NULL")
      #expect(try await app.submit("/e/\(link.token)", fields).status == 303)
      try await app.takeNotifications()
    }
  }

  @Test func `an address may send a limited number of forms, whatever their outcome`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let statuses = try await app.race(RateLimit.forms.burst + 5) { _ in try await app.submit("/e/wrong", ["a": "b"]) }
      #expect(statuses[404, default: 0] >= RateLimit.forms.burst && statuses[429, default: 0] >= 1, "\(statuses)")
      #expect(try await app.submit("/g/wrong", ["a": "b"]).header("Retry-After") != nil)
    }
  }
}
