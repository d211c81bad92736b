import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Removing the visitors of a link together.
@Suite struct LinkVisitorsTests {
  @Test func `the visitors of a link leave together, and their places are given on once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let event = try await ana.createEvent("Swim", inviting: [ben], capacity: 3)["id"].string ?? ""
      try await app.takeNotifications()
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let other = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      // Three have the places, and one of the link, ben and one of another link wait.
      for name in ["Zoe", "Yan", "Xia", "Wim"] { try await app.visit(link.token, name: name) }
      let confirmed = try await app.confirmedVisit(link.token, name: "Vic", "maybe", email: "vic@example.com")
      try await ben.answer("going", to: event)
      let stays = try await app.visit(other.token, name: "Ulf")
      _ = try await cleo.join(link.token)
      try await app.takeNotifications()
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "waitlisted")
      #expect(
        try await ana.get("notifications")["items"].array.contains { $0["message"].string?.contains("Zoe") == true })

      let path = "events/\(event)/links/\(link.id)?visitors=remove"
      let stale = try await app.stale(among: [ana, ben, cleo]) {
        let removed = try await ana.send("DELETE", path)
        #expect(removed.status == 204)
      }
      #expect(stale["ana"] == [.events, .notifications] && stale["ben"]?.contains(.invitations) == true)
      let guests = try await ana.get("events/\(event)/invitations")["items"].array
      #expect(Set(guests.map { $0["name"].string }) == ["Ben", "Cleo", "Ulf"])
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      #expect(try await stays.state == "going 0")
      #expect(try await confirmed.page().status == 404)
      let received = try await app.takeNotifications()
      #expect(Set(received.map(\.type)) == ["waitlist-promoted"])
      // Nothing is left of them.
      for name in ["Zoe", "Yan", "Xia", "Wim", "Vic", "vic@example.com"] {
        #expect(
          try await app.value("SELECT count(*) FROM notifications WHERE payload::text LIKE '%' || \(name) || '%'") == 0)
        #expect(try await app.value("SELECT count(*) FROM visitors WHERE name = \(name) OR email = \(name)") == 0)
      }
      try await app.expectConsistency()
      // Again, and for a link that was revoked before.
      #expect(try await ana.send("DELETE", path).status == 204)
      #expect(try await ana.send("DELETE", "events/\(event)/links/\(other.id)").status == 204)
      #expect(try await stays.state == "going 0")
      #expect(try await ana.send("DELETE", "events/\(event)/links/\(other.id)?visitors=remove").status == 204)
      #expect(try await stays.page().status == 404)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `only hosts remove visitors, of open events, and only of the event's own link`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      let another = try await ana.createEvent("Run")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token)
      try await app.takeNotifications()
      let path = "events/\(event)/links/\(link.id)?visitors="
      #expect(try await ben.send("DELETE", path + "remove").problem == "not-a-host")
      #expect(try await ana.send("DELETE", "events/\(another)/links/\(link.id)?visitors=remove").status == 204)
      for bad in ["all", "", "remove&visitors=remove"] {
        #expect(try await ana.send("DELETE", path + bad).badFields == ["visitors"], "\(bad)")
      }
      #expect(try await visit.page().status == 200)
      #expect(try await ana.send("DELETE", path + "keep").status == 204)
      #expect(try await visit.page().status == 200)
      _ = try await ana.send("DELETE", "events/\(event)")
      #expect(try await ana.send("DELETE", path + "remove").problem == "event-cancelled")
      try await app.takeNotifications()
    }
  }

  @Test func `a new link asks for approval, unless its host says otherwise`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      for (settings, approval) in [
        (#"{"kind": "answer"}"#, true), (#"{"kind": "view"}"#, true), (#"{"kind": "answer", "approval": null}"#, true),
        (#"{"kind": "answer", "approval": false}"#, false),
      ] {
        let made = try await ana.send("POST", "events/\(event)/links", settings)
        #expect(made.json["approval"].bool == approval, "\(settings)")
      }
      let made = try await ana.send("POST", "events/\(event)/links", #"{"kind": "answer"}"#)
      let token = String(made.json["url"].string?.split(separator: "/").last ?? "")
      #expect(try await app.send("GET", "/e/\(token)").body.contains("A host must approve your answer first."))
      #expect(try await app.visit(token).state == "pending 0")
      #expect(try await ben.join(token).json["myStatus"].string == "pending")
      try await app.takeNotifications()
    }
  }
}
