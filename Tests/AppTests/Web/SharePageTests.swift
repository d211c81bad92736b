import Foundation
import HTML
import Postgres
import TestSupport
import Testing

@testable import App

/// The pages of share links.
@Suite struct SharePageTests {
  @Test func `the page shows the event, needs nothing, and is kept from caches, engines and referrers`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      try await ana.edit(event, #"{"note": "Bring towels", "location": {"name": "Lake & Pier"}}"#)
      try await ana.edit(event, #"{"url": "https://lake.example/?day=1&time=2"}"#)
      try await ben.answer("going", to: event)
      let counts = try await ana.createLink(to: event, #"{"kind": "view"}"#)
      let names = try await ana.createLink(to: event, #"{"kind": "answer", "shows": "names"}"#)
      let page = try await app.send("GET", "/e/\(counts.token)?utm_source=chat&x=1&x=2")
      #expect(page.status == 200 && page.header("Content-Type") == "text/html; charset=utf-8")
      #expect(page.header("Cache-Control") == "no-store" && page.header("X-Robots-Tag") == "noindex")
      #expect(page.header("Referrer-Policy") == "no-referrer" && page.header("Set-Cookie") == nil)
      #expect(page.header("Content-Security-Policy") == SharePage.contentSecurityPolicy)
      #expect(page.body.contains("Wednesday, May 1, 2030, 8:00 PM to 10:00 PM"))
      #expect(page.body.contains("Time zone: Europe/Berlin (UTC+02:00)"))
      #expect(page.body.contains("Lake &amp; Pier") && page.body.contains("search?query=Lake%20%26%20Pier"))
      let web = "https://lake.example/?day=1&amp;time=2"
      #expect(page.body.contains(#"<a href="\#(web)" rel="noreferrer nofollow">\#(web)</a>"#))
      #expect(page.body.contains("1 going, 0 maybe") && page.body.contains("Bring towels"))
      #expect(!page.body.contains("<script") && !page.body.contains("<img") && !page.body.contains("Ben"))
      let og = page.body.matches(of: /property="(og:[a-z]+)" content="([^"]*)"/).map { "\($0.output.1) \($0.output.2)" }
      #expect(og == ["og:type website", "og:title Swim", "og:description Wednesday, May 1, 2030"])
      #expect(try await app.send("GET", "/e/\(names.token)").body.contains("<bdi>Ben</bdi>"))
      try await app.takeNotifications()
    }
  }

  @Test func `twenty names at most, and how many more`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(22, around: ana)
      let event = try await ana.createEvent(inviting: guests, capacity: 22)["id"].string ?? ""
      for guest in guests { try await guest.answer("going", to: event) }
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "shows": "names"}"#)
      let body = try await app.send("GET", "/e/\(link.token)").body
      #expect(body.matches(of: /<li>/).count == 20 && body.contains("and 2 more"))
      #expect(body.contains("All places are taken."))
      try await app.takeNotifications()
    }
  }

  @Test func `cancelled, expired, archived, revoked and unknown links have their pages`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let other = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await ana.cancelEvent(event)
      let cancelled = try await app.send("GET", "/e/\(link.token)")
      #expect(cancelled.status == 200 && cancelled.body.contains("This event is cancelled."))
      try await app.database.execute("UPDATE share_links SET expires_at = now() - interval '1 hour'")
      let expired = try await app.send("GET", "/e/\(link.token)")
      #expect(expired.status == 410 && expired.body.contains("has expired") && !expired.body.contains("Swim"))
      try await app.database.execute("UPDATE share_links SET expires_at = NULL")
      try await app.database.execute("UPDATE events SET archived_at = now()")
      #expect(try await app.send("GET", "/e/\(link.token)").body == expired.body)
      _ = try await ana.send("DELETE", "events/\(event)/links/\(other.id)")
      let revoked = try await app.send("GET", "/e/\(other.token)")
      #expect(revoked.status == 404 && revoked.header("Content-Type") == "text/html; charset=utf-8")
      for wrong in ["x", "B" + other.token.dropFirst(), link.token + "A", String(link.token.dropLast()), "%3Cb%3E"] {
        let page = try await app.send("GET", "/e/\(wrong)")
        #expect(page.status == 404 && page.body == revoked.body, "\(wrong)")
      }
    }
  }

  @Test func `a mark that combines with a quote or a bracket does not keep it from being escaped`() async throws {
    try await TestApp.run { app in
      let hostile = #"0;url=https://evil.example/\"\u0301 http-equiv=refresh <\u0301script>'\u0301&\u0301"#
      let ana = try await app.signUp("ana")
      try await ana.editProfile(#"{"displayName": "\#(hostile)"}"#)
      let event = try await ana.createEvent()["id"].string ?? ""
      try await ana.edit(
        event, #"{"title": "\#(hostile)", "note": "\#(hostile)", "location": {"name": "\#(hostile)"}}"#)
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "shows": "names", "email": "required"}"#)
      let typed = "0;url=https://evil.example/\"\u{301} http-equiv=refresh <\u{301}script>'\u{301}&\u{301}"
      let visit = try await app.visit(link.token, name: typed, email: "zoe@example.com")
      let refused = try await app.submit(
        "/e/\(link.token)", ["form": "", "name": typed, "answer": "perhaps", "email": typed])
      #expect(refused.status == 422)
      let pages = [
        try await app.send("GET", "/e/\(link.token)").body, try await app.send("GET", visit.path).body, refused.body,
      ]
      for page in pages {
        let scalars = Array(page.unicodeScalars)
        let marked = scalars.indices.dropFirst().filter { scalars[$0] == "\u{301}" }.map { scalars[$0 - 1] }
        // Each follows the end of a reference, such as &#34;.
        #expect(marked.count >= 8 && marked.allSatisfy { $0 == ";" })
      }
      try await app.takeNotifications()
    }
  }

  @Test func `with everything at its longest, the page and a refused form have less than 30 KB`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      func long(_ count: Int, _ text: String = "\"") -> String { String(repeating: text, count: count) }
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent(capacity: 25)["id"].string ?? ""
      for host in try await app.crowd(20, around: ana, named: "host") { try await ana.addHost(host, to: event) }
      let link = try await ana.createLink(
        to: event, #"{"kind": "answer", "shows": "names", "email": "required", "maxPlusOnes": 10, "approval": true}"#)
      // A quote has five bytes in HTML. In the address of the map, an emoji has twelve in addition to its own four.
      let zone = try #require(TimeZone.knownTimeZoneIdentifiers.max { $0.count < $1.count })
      try await ana.edit(
        event,
        #"{"title": "\#(long(200, "\\\""))", "note": "\#(long(2000, "\\\""))", "timeZone": "\#(zone)", "#
          + #""endTime": "2031-12-31T22:59:00Z", "location": {"name": "\#(long(200, "\u{1f389}"))"}}"#)
      // As many names as fit, each as long as its share. Their elements are also counted.
      let linkID = try #require(ShareLink.ID(link.id))
      try await app.database.batch(
        "UPDATE users SET display_name = repeat('\"', 14)",
        """
        INSERT INTO visitors (id, event_id, link_id, kid, name, status, plus_ones, answered_at)
        SELECT gen_random_uuid(), event_id, id, kid, repeat('"', 15), 'going', 0, now()
        FROM share_links, generate_series(1, 9000) WHERE id = \(linkID)
        """,
        "UPDATE events SET going_count = 9000, visitor_count = 9000")
      let typed = long(1000)
      let refused = try await app.submit(
        "/e/\(link.token)",
        [
          "form": try await app.formToken(of: link.token), "name": typed, "answer": typed, "plusOnes": typed,
          "email": typed,
        ])
      #expect(refused.status == 422 && refused.body.utf8.count < 30_000, "\(refused.body.utf8.count)")
      #expect(refused.body.matches(of: /<li><bdi>/).count == 20 && refused.body.contains("and 8980 more"))
      #expect(refused.body.matches(of: /class="error"/).count == 4)
      // Text that is too long is cut, which leaves room for longer messages.
      for (field, most) in [("name", AnswerForm.longestName), ("email", EmailAddress.maximumLength), ("plusOnes", 10)] {
        let input = refused.body.split(separator: "\n").first { $0.hasPrefix("<input id=\"\(field)\"") }
        #expect(input?.contains("value=\"\(long(most).htmlEscaped)\"") == true, "\(field)")
      }
      // The longest values that the form accepts come back whole.
      let longest = [
        "name": long(AnswerForm.longestName), "plusOnes": "11", "email": long(EmailAddress.maximumLength - 2) + "@x",
      ]
      let whole = try await app.submit(
        "/e/\(link.token)",
        longest.merging(["form": try await app.formToken(of: link.token), "answer": "perhaps"]) { $1 })
      #expect(whole.status == 422 && whole.body.utf8.count < 30_000, "\(whole.body.utf8.count)")
      for value in longest.values { #expect(whole.body.contains("value=\"\(value.htmlEscaped)\"")) }
      try await app.database.execute("UPDATE visitors SET name = repeat('\"', 100)")
      #expect(try await app.send("GET", "/e/\(link.token)").body.utf8.count < 30_000)
      let visit = try await app.visit(link.token, name: long(100), email: "zoe@x.org")
      let own = try await visit.act("answer", ["answer": typed, "plusOnes": typed], expecting: 422)
      #expect(own.body.utf8.count < 30_000, "\(own.body.utf8.count)")
      try await app.database.execute("DELETE FROM visitors")
      try await app.database.execute("UPDATE events SET going_count = 0, pending_count = 0, visitor_count = 0")
      try await app.takeNotifications()
    }
  }

  @Test func `logs and the comments of statements have the route, never the token`() async throws {
    let log = CapturedLog()
    try await TestApp.run(["MUSTER_LOG_REQUESTS": "all"], logger: log.logger()) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      _ = try await app.send("GET", "/e/\(link.token)")
      _ = try await ana.join(link.token, expecting: 409)
      let visit = try await app.visit(link.token)
      _ = try await app.send("GET", visit.path)
      let text = log.text
      #expect(text.contains("/e/{token}") && text.contains("links/{token}/join") && text.contains("/g/{token}"))
      #expect(!text.contains(link.token) && !text.contains(visit.token))
      try await app.takeNotifications()
    }
  }
}
