import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Reports of visitors, and reports from the pages of share links.
@Suite struct VisitorReportTests {
  @Test func `hosts and guests report a visitor, with the event and the link`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let asking = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let visit = try await app.visit(link.token, name: "Buy pills")
      let pending = try await app.visit(asking.token, name: "Rude")
      _ = try await cleo.join(asking.token)
      func report(_ id: String, by phone: Phone) async throws -> APIResponse {
        try await phone.send("POST", "reports", #"{"guestId": "\#(id)", "reason": "spam", "text": "Pills"}"#)
      }
      let made = try await report(visit.id.description, by: ana)
      #expect(made.status == 201 && made.json["guestId"].string == visit.id.description)
      #expect(made.json["userId"] == .null && made.json["eventId"] == .null)
      let again = try await report(visit.id.description.uppercased(), by: ana)
      #expect(again.status == 200 && again.json["id"] == made.json["id"])
      #expect(try await report(visit.id.description, by: ben).status == 201)
      // A visitor who waits for approval is shown to hosts only, and a guest who waits sees no one else.
      #expect(try await report(pending.id.description, by: ana).status == 201)
      #expect(try await report(pending.id.description, by: ben).problem == "guest-not-found")
      #expect(try await report(visit.id.description, by: cleo).problem == "guest-not-found")
      // For others there is no such guest, and the id of a user is none.
      #expect(try await report(visit.id.description, by: dev).problem == "guest-not-found")
      #expect(try await report(Guest.ID.new().description, by: ana).problem == "guest-not-found")
      #expect(try await report(ben.id, by: ana).problem == "guest-not-found")
      let both = #"{"guestId": "\#(visit.id)", "userId": "\#(ben.id)", "reason": "spam"}"#
      #expect(Set(try await ana.send("POST", "reports", both).badFields) == ["guestId", "userId"])

      let entries = try await app.reports()
      #expect(entries.map(\.guestId) == [pending.id, visit.id, visit.id].map(\.description))
      #expect(
        entries[1].snapshot == [
          "name": "Buy pills", "event": "Swim", "eventId": event, "linkId": link.id, "creator": "ana",
        ])
      #expect(entries[1].reporter == "ben" && entries[1].owner == nil && entries[1].expiresAt == nil)
      // What an operator has closed goes with the visitor's data. What is open stays.
      #expect(try await Report.close(try #require(Report.ID(entries[1].id)), note: nil, in: app.database))
      try await visit.act("erase", expecting: 200)
      #expect(try await app.reports().map(\.id) == [entries[0].id, entries[2].id])
      try await app.takeNotifications()
    }
  }

  @Test func `an open report of a visitor stays, and a closed one for 90 days, or until the visitor's data is erased`()
    async throws
  {
    try await TestApp.run { app in
      func age(by interval: SQL) async throws {
        try await app.database.execute(
          """
          UPDATE reports SET created_at = created_at - \(interval), closed_at = closed_at - \(interval),
            expires_at = expires_at - \(interval)
          """)
        await app.keepHouse()
      }
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      var visits: [Visit] = []
      for name in ["Zoe", "Yan"] {
        let visit = try await app.visit(link.token, name: name)
        let body = #"{"guestId": "\#(visit.id)", "reason": "spam"}"#
        #expect(try await ana.send("POST", "reports", body).status == 201)
        visits.append(visit)
      }
      // The event stays for its guest, without a creator.
      try await ana.deleteAccount()
      try await ben.report(event: event)
      try await age(by: "interval '91 days'")
      #expect(try await app.reports().count == 3)
      try await visits[1].act("erase", expecting: 200)
      #expect(try await app.reports().count == 3)
      try await app.closeReports()
      await app.keepHouse()
      // One is about a visitor who is still there.
      #expect(try await app.reports().map(\.guestId) == [visits[0].id.description])
      try await age(by: "interval '89 days'")
      #expect(try await app.reports().count == 1)
      try await age(by: "interval '1 day 1 second'")
      #expect(try await app.reports().isEmpty)
      try await app.takeNotifications()
    }
  }

  // MARK: The page

  private func token(of link: String, in app: TestApp) async throws -> String {
    let page = try await app.send("GET", "/e/\(link)/report")
    #expect(page.status == 200 && page.header("Content-Security-Policy")?.contains("form-action 'self'") == true)
    return String(try #require(page.body.firstMatch(of: /name="form" value="([^"]+)"/)?.output.1))
  }

  private func file(_ link: String, _ fields: [String: String], in app: TestApp) async throws -> APIResponse {
    try await app.submit("/e/\(link)/report", fields)
  }

  @Test func `anyone with the link reports the event, by a form that needs no script`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Pills")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "view"}"#)
      let page = try await app.send("GET", "/e/\(link.token)")
      #expect(page.body.contains(#"<a href="\#(link.token)/report">Report this event</a>"#), "\(page.body)")
      var fields = [
        "form": try await token(of: link.token, in: app), "reason": "spam", "text": "They sell <pills>\r\nhere",
      ]
      let thanks = try await file(link.token, fields, in: app)
      #expect(thanks.status == 200 && thanks.body.contains("Thank you for your report"))
      // Sent twice, it is one report.
      #expect(try await file(link.token, fields, in: app).body == thanks.body)
      let entries = try await app.reports()
      #expect(entries.count == 1)
      let entry = try #require(entries.first)
      #expect(entry.eventId == event && entry.linkId == link.id && entry.owner == "ana" && entry.reporter == nil)
      #expect(entry.reason == "spam" && entry.text == "They sell <pills>\nhere" && entry.snapshot["title"] == "Pills")

      // A form with mistakes comes back with what was typed.
      fields["reason"] = ""
      let mistaken = try await file(link.token, fields, in: app)
      #expect(mistaken.status == 422 && mistaken.body.contains("Choose a reason."))
      #expect(mistaken.body.contains("They sell &lt;pills&gt;"))
      fields["reason"] = "spam"
      fields["text"] = String(repeating: "x", count: 2001)
      #expect(try await file(link.token, fields, in: app).status == 422)
      for wrong in ["", "x", fields["form"]?.dropLast().description ?? ""] {
        let refused = try await file(link.token, fields.merging(["form": wrong, "text": ""]) { $1 }, in: app)
        #expect(refused.status == 422 && refused.body.contains("open for too long"))
      }
      #expect(try await app.reports().count == 1)
      // An expired link can also be reported.
      try await app.database.execute("UPDATE share_links SET expires_at = now()")
      let late = ["form": try await token(of: link.token, in: app), "reason": "hate"]
      #expect(try await file(link.token, late, in: app).status == 200)
      #expect(try await app.reports().count == 2)
    }
  }

  @Test func `the page is no oracle, and takes no forms of other sites`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let other = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let revoked = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      _ = try await ana.send("DELETE", "events/\(event)/links/\(revoked.id)")
      let unknown = try await app.send("GET", "/e/\(revoked.token)")
      for path in [revoked.token, "x", "\(link.token)x"].map({ "/e/\($0)/report" }) {
        let page = try await app.send("GET", path)
        #expect(page.status == 404 && page.body == unknown.body)
        #expect(try await app.submit(path, ["reason": "spam"]).body == unknown.body)
      }
      // The form of another link, and the trap.
      let form = try await token(of: link.token, in: app)
      #expect(try await file(other.token, ["form": form, "reason": "spam"], in: app).status == 422)
      #expect(try await file(link.token, ["form": form, "reason": "spam", "website": "x"], in: app).status == 200)
      let foreign = try await app.send(
        "POST", "/e/\(link.token)/report", body: "form=\(form)&reason=spam",
        headers: [("Content-Type", "application/x-www-form-urlencoded"), ("Sec-Fetch-Site", "cross-site")])
      #expect(foreign.status == 403)
      #expect(try await app.reports().isEmpty)
      // Beyond the limit, nothing is kept, and nothing shows it.
      var bodies: Set<String> = []
      for _ in 0..<Report.maximumFromPages + 2 {
        let fields = ["form": try await token(of: link.token, in: app), "reason": "spam"]
        bodies.insert(try await file(link.token, fields, in: app).body)
      }
      #expect(bodies.count == 1)
      #expect(try await app.reports().count == Report.maximumFromPages)
      // A user's own report does not depend on it, and the reports go with the account.
      let ben = try await app.signUp("ben")
      _ = try await ben.join(link.token)
      try await ben.report(event: event)
      try await app.closeReports()
      try await ana.deleteAccount()
      #expect(try await app.reports().isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `an address can send ten reports in an hour`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      for left in (0..<10).reversed() {
        let fields = ["form": try await token(of: link.token, in: app), "reason": "spam"]
        let response = try await file(link.token, fields, in: app)
        #expect(response.header("RateLimit")?.hasPrefix(#""page-reports";r=\#(left);"#) == true)
      }
      let refused = try await file(link.token, ["reason": "spam"], in: app)
      #expect(refused.status == 429 && refused.problem == "rate-limited")
    }
  }

  @Test func `operators see who sent a report, and what it is about`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Pills")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token, name: "Rude")
      _ = try await ana.send("POST", "reports", #"{"guestId": "\#(visit.id)", "reason": "hate"}"#)
      _ = try await file(link.token, ["form": try await token(of: link.token, in: app), "reason": "spam"], in: app)
      let program = try await Program(
        Program.path("muster"), ["reports", "list"], environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
      #expect(try await program.exitStatus() == 0, "\(program.standardError)")
      let output = program.standardOutput
      #expect(output.contains("  hate  visitor \(visit.id)  by ana\n"), "\(output)")
      #expect(output.contains("  spam  event \(event) of ana  by someone on the page of link \(link.id)\n"))
      #expect(output.contains("  linkId: \(link.id)\n") && output.contains("  event: Pills\n"))
      try await app.takeNotifications()
    }
  }
}
