import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The page of a visitor.
@Suite struct VisitorPageTests {
  /// Ana's event with ben as a guest and a link, through which a visitor might come.
  private struct Scene {
    let ana, ben: Phone
    let event: String
    let link: (id: String, token: String)
    let visit: Visit
  }

  private func run(
    capacity: Int, _ body: @escaping @Sendable (TestApp, Scene) async throws -> Void
  ) async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben], capacity: capacity)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 3}"#)
      let visit = try await app.visit(link.token, "maybe")
      try await app.takeNotifications()
      try await body(app, Scene(ana: ana, ben: ben, event: event, link: link, visit: visit))
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor changes and withdraws the answer by the rules of all guests`() async throws {
    try await run(capacity: 3) { app, scene in
      let (ana, ben, event, visit) = (scene.ana, scene.ben, scene.event, scene.visit)
      try await visit.answer("going", plusOnes: 2)
      #expect(try await visit.state == "going 2")
      try await app.takeNotifications()
      // The same answer changes nothing.
      #expect(try await ana.stale { try await visit.answer("going", plusOnes: 2) } == [])
      #expect(try await ana.stale { try await visit.answer("going") } == [])
      #expect(try await visit.answer("going", plusOnes: 3, expecting: 422).body.contains("has no room"))
      try await ben.answer("going", to: event)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "waitlisted")
      try await app.takeNotifications()
      try await visit.act("withdraw")
      #expect(try await visit.state == "declined 2")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["guest-answered", "waitlist-promoted", "waitlist-promoted"], "\(received)")
      #expect(received.map(\.recipient) == [ana.id, ben.id, ana.id])
      #expect(try await visit.page().body.contains("You are not coming."))
    }
  }

  @Test func `a visitor who waits is promoted like an invitee, and the hosts are notified`() async throws {
    try await run(capacity: 1) { app, scene in
      try await scene.ben.answer("going", to: scene.event)
      try await scene.visit.answer("going")
      #expect(try await scene.visit.state == "waitlisted 0")
      try await app.takeNotifications()
      try await scene.ben.answer("declined", to: scene.event)
      #expect(try await scene.visit.state == "going 0")
      let promoted = try await app.takeNotifications().filter { $0.type == "waitlist-promoted" }
      #expect(promoted.map(\.recipient) == [scene.ana.id])
      #expect(promoted[0].payload["message"].string == "Zoe got a free place and is going to “Swim”.")
      #expect(promoted[0].payload["guestId"].string == scene.visit.id.description)
    }
  }

  @Test func `after the link is revoked, the visitor stays, and brings no more people than before`() async throws {
    try await run(capacity: 3) { app, scene in
      _ = try await scene.ana.send("DELETE", "events/\(scene.event)/links/\(scene.link.id)")
      #expect(try await scene.visit.answer("going", plusOnes: 1, expecting: 422).body.contains("must be"))
      try await scene.visit.answer("going")
      #expect(try await scene.visit.state == "going 0")
    }
  }

  @Test func `a closed event has a sentence instead of the form, and refuses answers`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token)
      for (setup, undo, words) in [
        ("answer_by = now() - interval '1 hour'", "answer_by = NULL", "The deadline for answers has passed."),
        ("live_until = now() + interval '1 hour'", "live_until = now() + interval '9 days'", "The event is over."),
        ("archived_at = now()", "archived_at = NULL", "The event is over."),
        ("status = 'cancelled'", "status = 'cancelled'", "The event was cancelled."),
      ] {
        try await app.database.execute("UPDATE events SET \(unescaped: setup)")
        let page = try await visit.page()
        #expect(page.status == 200 && page.body.contains(words) && !page.body.contains("Change my answer"), "\(words)")
        try await visit.answer("maybe", expecting: 409)
        try await visit.act("withdraw", expecting: 422)
        try await app.database.execute("UPDATE events SET \(unescaped: undo)")
      }
      #expect(try await visit.state == "going 0")
      try await app.takeNotifications()
    }
  }

  @Test func `a host removes a visitor, whose page is gone`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben], capacity: 1)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token)
      let unknown = try await app.send("GET", "/g/wrong")
      try await ben.answer("going", to: event)
      try await app.takeNotifications()
      let path = "events/\(event)/invitations/\(visit.id)"
      #expect(try await ben.send("DELETE", path).problem == "not-a-host")
      for _ in 1...2 { #expect(try await ana.send("DELETE", path).status == 200) }
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      let gone = try await visit.page()
      #expect(gone.status == 404 && gone.body == unknown.body)
      #expect(try await visit.answer("going", expecting: 404).body == unknown.body)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `visitors erase their data, and their places go to the next`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben], capacity: 1)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.confirmedVisit(link.token, name: "Zoe Zebra", email: "zoe@x.org")
      try await ben.answer("going", to: event)
      try await app.fanOut()
      try await app.database.execute("UPDATE visitors SET plus_ones = plus_ones")
      let page = try await app.send("GET", visit.path).body
      #expect(page.contains(#"value="ask-to-erase""#) && !page.contains(#"value="erase""#))
      let asked = try await visit.act("ask-to-erase", expecting: 200)
      #expect(asked.body.contains("cannot be undone") && asked.body.contains(#"<button name="do" value="erase">"#))
      #expect(asked.body.contains(#"href="../g/"#) && !asked.body.contains("<h2>"))
      let kept: Int? = try await app.value("SELECT count(*) FROM visitors WHERE id = \(visit.id)")
      #expect(kept == 1)
      let erased = try await visit.act("erase", expecting: 200)
      #expect(erased.body.contains("Your data has been erased"))
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      #expect(try await visit.page().status == 404)
      for table in ["visitors", "notifications", "notification_queue", "deliveries", "mails", "mail_attempts"] {
        let left: Int? = try await app.value(
          "SELECT count(*) FROM \(unescaped: table) AS t WHERE t::text ~ 'Zebra|zoe@x.org'")
        #expect(left == 0, "\(table)")
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `GET and HEAD of every page write nothing`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token, email: "zoe@x.org")
      let mailed = try #require(try await app.takeMails().compactMap(\.page).first)
      let calendar = try #require(app.dependencies.visitorTokens.calendar.token(of: visit.id, kid: app.visitorKid))
      try await app.takeNotifications()
      let before = try await app.contents()
      let paths = [
        "/e/\(link.token)", visit.path, "/g/\(mailed)", "/g/\(mailed)/unsubscribe",
        "/calendars/visitors/\(calendar).ics", "/e/wrong",
      ]
      let statuses = try await app.race(1000) {
        try await app.send($0 % 2 == 0 ? "GET" : "HEAD", paths[$0 % paths.count] + "?fbclid=1&do=erase")
      }
      #expect(statuses == [200: 834, 404: 166])
      #expect(try await app.contents() == before)
      for table in ["visitors", "share_links"] { #expect(before?.contains(table) == true) }
    }
  }

  @Test func `the event's calendar follows the answer and cannot change it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token)
      let page = try await visit.page()
      let found = try #require(page.body.firstMatch(of: /href="\.\.(\/calendars\/visitors\/([^"]+)\.ics)"/))
      let (path, token) = (String(found.output.1), String(found.output.2))
      let calendar = try await app.send("GET", path)
      #expect(
        calendar.status == 200 && calendar.body.contains("SUMMARY:Swim") && calendar.body.contains("BEGIN:VALARM"))
      let tag = try #require(calendar.header("ETag"))
      #expect(try await app.send("GET", path, headers: [("If-None-Match", tag)]).status == 304)
      try await visit.act("withdraw")
      let withdrawn = try await app.send("GET", path, headers: [("If-None-Match", tag)])
      #expect(withdrawn.status == 200 && withdrawn.body.contains("TRANSP:TRANSPARENT"))
      #expect(try await app.send("GET", "/g/\(token)").status == 404)
      #expect(try await app.submit("/g/\(token)", ["do": "erase"]).status == 404)
      #expect(try await app.send("GET", "/calendars/visitors/\(visit.token).ics").problem == "calendar-not-found")
      try await ana.cancelEvent(event)
      #expect(try await app.send("GET", path).body.contains("STATUS:CANCELLED"))
      try await app.takeNotifications()
    }
  }

  @Test func `the pages stay under 30 KB with hostile texts, and every control has a label`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", displayName: "<b>&amp;'\\\"</b>")
      let event = try await ana.createEvent(String(repeating: "<", count: 200))["id"].string ?? ""
      let note = "\u{202e}}}{{style}}<script>alert(1)</script>" + String(repeating: "'", count: 1900)
      try await ana.edit(event, #"{"note": "\#(note)", "location": {"name": "<img src=x onerror='a'>"}}"#)
      let link = try await ana.createLink(
        to: event, #"{"kind": "answer", "shows": "names", "maxPlusOnes": 10, "email": "required", "approval": true}"#)
      let visit = try await app.visit(link.token, name: String(repeating: "&", count: 100), email: "a@x.org")
      let mailed = Visit(app: app, token: try #require(try await app.takeMails().compactMap(\.page).first))
      let refused = try await app.submit(
        "/e/\(link.token)",
        ["form": try await app.formToken(of: link.token), "name": String(repeating: "\"", count: 3000), "email": "<"])
      let share = try await app.send("GET", "/e/\(link.token)")
      #expect(share.body.contains("&lt;script&gt;alert(1)") && share.body.contains("}}{{style}}"))
      for page in [
        share, refused, try await visit.page(), try await mailed.page(),
        try await app.send("GET", mailed.path + "/unsubscribe"),
      ] {
        let body = page.body
        #expect(body.utf8.count < 30_000 && !body.contains("<script") && !body.contains("<b>"), "\(body.utf8.count)")
        #expect(!body.contains("<img") && !body.contains("\u{202e}"))
        #expect(body.contains("<html lang=\"en\">") && body.matches(of: /<h1[ >]/).count == 1)
        #expect(body.matches(of: /<main>/).count == 1 && body.matches(of: /<title>/).count == 1)
        let ids = body.matches(of: /\sid="([^"]+)"/).map { String($0.output.1) }
        #expect(Set(ids).count == ids.count)
        for reference in body.matches(of: /(?:for|href)="#?([A-Za-z-]+)"/).map({ String($0.output.1) }) {
          #expect(ids.contains(reference), "\(reference)")
        }
        for list in body.matches(of: /aria-describedby="([^"]+)"/) {
          for id in list.output.1.split(separator: " ") { #expect(ids.contains(String(id)), "\(id)") }
        }
        // Every field that people see has a label; radio buttons stand in theirs, inside of a group with a name.
        for input in body.matches(of: /<input[^>]*>/).map({ String($0.output) }) {
          if input.contains("type=\"hidden\"") || input.contains("type=\"radio\"") { continue }
          let id = try #require(input.firstMatch(of: /\sid="([^"]+)"/)).output.1
          #expect(body.contains("<label for=\"\(id)\""), "\(input)")
        }
        if body.contains("<input type=\"radio\"") { #expect(body.contains("<legend>")) }
      }
      #expect(try await mailed.page().body.contains("Confirm my address"))
      #expect(try await !visit.page().body.contains("Confirm my address"))
      try await app.takeNotifications()
    }
  }

  @Test func `the style has enough contrast, in light and dark`() throws {
    /// The relative luminance of WCAG 2.2.
    func luminance(_ hex: String) -> Double {
      let digits = hex.count == 3 ? hex.map { "\($0)\($0)" } : (0..<3).map { String(hex.dropFirst($0 * 2).prefix(2)) }
      let parts = digits.map { Double(Int($0, radix: 16) ?? 0) / 255 }
        .map { $0 <= 0.04045 ? $0 / 12.92 : pow(($0 + 0.055) / 1.055, 2.4) }
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    }
    func contrast(_ one: String, _ other: String) -> Double {
      let (light, dark) = (max(luminance(one), luminance(other)), min(luminance(one), luminance(other)))
      return (light + 0.05) / (dark + 0.05)
    }
    let themes = Resources.shareStyle.matches(of: /:root \{([^}]+)\}/).map { String($0.output.1) }
    #expect(themes.count == 2)
    for theme in themes {
      let pairs = theme.matches(of: /--([a-z]+): #([0-9a-f]+)/).map { (String($0.output.1), String($0.output.2)) }
      let colors = Dictionary(uniqueKeysWithValues: pairs)
      func color(_ name: String) -> String { colors[name] ?? "" }
      for text in ["text", "quiet", "link", "error"] {
        for ground in ["page", "panel"] { #expect(contrast(color(text), color(ground)) >= 4.5, "\(text) on \(ground)") }
      }
      // Borders of fields and buttons, and the outline of the focus.
      for line in ["line", "link", "error"] { #expect(contrast(color(line), color("page")) >= 3, "\(line)") }
    }
  }
}
