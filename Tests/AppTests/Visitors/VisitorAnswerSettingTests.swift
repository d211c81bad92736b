import Postgres
import TestSupport
import Testing

@testable import App

/// Answers of visitors that hosts set.
@Suite struct VisitorAnswerSettingTests {
  private func set(_ status: String, of visit: Visit, at event: String, by host: Phone) async throws -> APIResponse {
    try await host.send("PUT", "events/\(event)/invitations/\(visit.id)", #"{"status": "\#(status)"}"#)
  }

  @Test func `after the deadline, the page says to ask a host, who sets the answer within the capacity`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      let event = try await ana.createEvent("Swim", inviting: [ben, cleo], capacity: 2)["id"].string ?? ""
      try await ana.addHost(cleo, to: event)
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 2}"#)
      let zoe = try await app.confirmedVisit(link.token, "maybe", plusOnes: 1, email: "zoe@x.org")
      let yan = try await app.visit(link.token, name: "Yan", "maybe")
      try await app.database.execute("UPDATE events SET answer_by = now() - interval '1 hour'")
      try await app.takeNotifications()
      try await app.takeMails()
      try await zoe.answer("going", expecting: 409)
      let page = try await zoe.page()
      #expect(page.body.contains("Ask a host to change your answer.") && !page.body.contains("Change my answer"))
      #expect(try await set("going", of: zoe, at: event, by: ana).json["counts"]["going"].int == 2)
      #expect(try await zoe.state == "going 1")
      // First the mails, because taking notifications deletes them.
      let mails = try await app.takeMails()
      var received = try await app.takeNotifications()
      #expect(received.count == 1 && received[0] == ("guest-answered", cleo))
      #expect(received[0].payload["message"].string == "Zoe is going to “Swim”, with 1 other.")
      #expect(mails.map(\.type) == ["mail-visitor-answer-set"] && mails.map(\.to) == ["zoe@x.org"], "\(mails)")
      // Setting it again changes nothing.
      #expect(try await ana.stale { _ = try await set("going", of: zoe, at: event, by: ana) } == [])
      // The line is the same for everyone, and a place that becomes free goes to its first.
      #expect(try await set("going", of: yan, at: event, by: cleo).status == 200)
      #expect(try await yan.state == "waitlisted 0")
      try await app.takeNotifications()
      #expect(try await set("declined", of: zoe, at: event, by: cleo).status == 200)
      #expect(try await yan.state == "going 0")
      received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["guest-answered", "waitlist-promoted"])
      #expect(received.map(\.recipient) == [ana.id, ana.id])
      try await app.expectConsistency()
    }
  }

  @Test func `only hosts set an answer, and neither before the approval nor after the end`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let approving = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let zoe = try await app.visit(link.token)
      let pending = try await app.visit(approving.token, name: "Yan")
      let other = try await ana.createEvent("Other")["id"].string ?? ""
      #expect(try await set("maybe", of: zoe, at: event, by: ben).problem == "not-a-host")
      #expect(try await set("maybe", of: zoe, at: other, by: ana).problem == "guest-not-found")
      #expect(try await set("maybe", of: pending, at: event, by: ana).problem == "approval-pending")
      // The page promises only what hosts can do.
      try await app.database.execute("UPDATE events SET answer_by = now() - interval '1 hour'")
      let page = try await pending.page().body
      #expect(page.contains("The deadline for answers has passed.") && !page.contains("Ask a host"))
      for (change, problem) in [
        ("live_until = now() + interval '23 hours'", "event-archived"), ("archived_at = now()", "event-archived"),
        ("status = 'cancelled'", "event-cancelled"),
      ] {
        try await app.database.execute("UPDATE events SET \(unescaped: change)")
        let refused = try await set("maybe", of: zoe, at: event, by: ana)
        #expect(refused.status == 409 && refused.problem == problem)
      }
      #expect(try await zoe.state == "going 0")
      try await app.takeNotifications()
    }
  }
}
