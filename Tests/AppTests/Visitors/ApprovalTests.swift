import Postgres
import TestSupport
import Testing

@testable import App

/// Links whose guests a host approves first.
@Suite struct ApprovalTests {
  @Test func `a visitor waits for approval outside of all places, and then gets the wanted answer`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben], capacity: 2)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true, "maxPlusOnes": 5}"#)
      try await app.takeNotifications()
      let visit = try await app.visit(link.token, plusOnes: 1)
      let received = try await app.takeNotifications()
      #expect(received.count == 1 && received[0] == ("approval-requested", ana))
      #expect(received[0].payload["message"].string == "Zoe asks to come to “Swim”, with 1 other.")
      #expect(
        try await visit.page().body.contains("A host must approve your answer first: you want to come, with 1 other."))
      let counts = try await ana.get("events/\(event)")["counts"]
      #expect(counts["pending"].int == 2 && counts["going"].int == 0)
      #expect(try await visit.entry(at: event, seenBy: ana)["status"].string == "pending")
      // Other guests do not see whom no host has approved.
      #expect(try await visit.entry(at: event, seenBy: ben) == .null)
      #expect(try await ben.get("events/\(event)")["participants"].array.count == 1)
      try await ben.answer("going", to: event)
      // Until then, only the wanted answer changes; a group larger than the event is refused at once.
      #expect(try await visit.answer("going", plusOnes: 2, expecting: 422).body.contains("no room"))
      try await visit.answer("maybe", plusOnes: 0)
      try await visit.answer("going", plusOnes: 1)
      #expect(try await visit.state == "pending 1")
      try await app.takeNotifications()
      let path = "events/\(event)/invitations/\(visit.id)/approve"
      #expect(try await ben.send("POST", path).problem == "not-a-host")
      #expect(try await ana.send("POST", path).status == 200)
      // Ben was faster.
      #expect(try await visit.state == "waitlisted 1")
      #expect(try await ana.stale { _ = try await ana.send("POST", path) } == [])
      try await ben.answer("declined", to: event)
      #expect(try await visit.state == "going 1")
      #expect(try await visit.entry(at: event, seenBy: ben)["status"].string == "going")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `an invitee waits for approval, sees no one else, and is then invited`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      try await ana.addHost(ben, to: event)
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      _ = try await app.visit(link.token)
      try await app.takeNotifications()
      #expect(try await cleo.join(link.token).json["myStatus"].string == "pending")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["approval-requested", "approval-requested"])
      #expect(Set(received.map(\.recipient)) == [ana.id, ben.id] && received[0].payload["userId"].string == cleo.id)
      #expect(received[0].payload["guestId"].string == cleo.id)
      let shown = try await cleo.get("events/\(event)")
      #expect(shown["participants"].array.map { $0["id"].string } == [cleo.id])
      #expect(try await cleo.get("events/\(event)/invitations")["items"].array.count == 1)
      #expect(try await cleo.answer("going", to: event, expecting: 409).problem == "approval-pending")
      let setting = try await ana.send("PUT", "events/\(event)/invitations/\(cleo.id)", #"{"status": "going"}"#)
      #expect(setting.problem == "approval-pending")
      #expect(try await cleo.get("invitations?status=pending")["items"].array.count == 1)
      let stale = try await cleo.stale {
        let approved = try await ben.send("POST", "events/\(event)/invitations/\(cleo.id)/approve")
        #expect(approved.status == 200)
      }
      #expect(stale.isSuperset(of: [.events, .invitations]))
      let invited = try await app.takeNotifications()
      #expect(
        invited.count == 1 && invited[0] == ("event-invited", cleo) && invited[0].payload["userId"].string == ben.id)
      try await cleo.answer("going", to: event)
      #expect(try await ana.send("POST", "events/\(event)/invitations/\(ana.id)/approve").problem == "guest-not-found")
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `an approval whose group no longer fits the event at all is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent(capacity: 3)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true, "maxPlusOnes": 2}"#)
      let visit = try await app.visit(link.token, plusOnes: 2)
      try await ana.edit(event, #"{"capacity": 2}"#)
      let path = "events/\(event)/invitations/\(visit.id)"
      #expect(try await ana.send("POST", "\(path)/approve").problem == "no-room")
      #expect(try await ana.send("DELETE", path).json["counts"]["pending"].int == 0)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who answers no asks for no approval, and none can be given`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let visit = try await app.visit(link.token, "declined")
      let page = try await visit.page().body
      #expect(page.contains("You are not coming.") && !page.contains("must approve"))
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["guest-answered"])
      #expect(received[0].payload["message"].string == "Zoe cannot come to “Swim”.")
      let path = "events/\(event)/invitations/\(visit.id)/approve"
      #expect(try await ana.stale { _ = try await ana.send("POST", path) } == [])
      #expect(try await visit.state == "pending 0")
      // After a change of mind, the visitor asks again.
      try await visit.answer("maybe")
      #expect(try await visit.page().body.contains("A host must approve your answer first: you might come."))
      #expect(try await app.takeNotifications().map(\.type) == ["approval-requested"])
      try await visit.answer("going")
      #expect(try await visit.page().body.contains("A host must approve your answer first: you want to come."))
      #expect(try await app.takeNotifications().map(\.type) == ["approval-requested"])
      #expect(try await ana.send("POST", path).status == 200)
      #expect(try await visit.state == "going 0")
      try await app.expectConsistency()
    }
  }

  @Test func `an approval is not for a guest who was turned away since, and has asked again`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let visit = try await app.visit(link.token)
      func tag() async throws -> String {
        let response = try await ana.send("GET", "events/\(event)?include=guests")
        return try #require(response.header("ETag"))
      }
      func approve(_ guest: String, _ tag: String?) async throws -> APIResponse {
        try await ana.send(
          "POST", "events/\(event)/invitations/\(guest)/approve", headers: tag.map { [("If-Match", $0)] } ?? [])
      }
      let empty = try await tag()
      _ = try await ben.join(link.token)
      let seen = try await tag()
      // Another host.
      #expect(try await ana.send("DELETE", "events/\(event)/invitations/\(ben.id)").status == 200)
      #expect(try await approve(ben.id, seen).problem == "guest-not-found")
      _ = try await ben.join(link.token)
      for old in [empty, seen, "\"3\"", "\"x\"", "\(seen), \(empty)"] {
        let refused = try await approve(ben.id, old)
        #expect(refused.status == 412 && refused.problem == "lost-update", "\(old) \(refused.body)")
      }
      let again = try await tag()
      // Whatever else has changed.
      try await ana.edit(event, #"{"title": "Supper"}"#)
      for tag in [again, seen, nil] { #expect(try await approve(ben.id, tag).status == 200) }
      #expect(try await approve("\(visit.id)", "W/\(seen)").status == 200)
      #expect(try await visit.state == "going 0")
      try await app.takeNotifications()
    }
  }

  @Test func `an approval is not for a visitor who brings more people than the host has seen`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true, "maxPlusOnes": 5}"#)
      let visit = try await app.visit(link.token, plusOnes: 1)
      func tag() async throws -> String {
        let response = try await ana.send("GET", "events/\(event)?include=guests")
        return try #require(response.header("ETag"))
      }
      func approve(seenIn tag: String) async throws -> APIResponse {
        try await ana.send("POST", "events/\(event)/invitations/\(visit.id)/approve", headers: [("If-Match", tag)])
      }
      for (answer, plusOnes, isClockBehind) in [
        ("going", 5, false), ("maybe", 5, false), ("going", 4, true), ("maybe", 5, true),
      ] {
        if isClockBehind {
          try await app.database.batch(
            "ALTER TABLE events DISABLE TRIGGER event_changes",
            "UPDATE events SET stamp = clock_timestamp() + interval '1 hour'",
            "ALTER TABLE events ENABLE TRIGGER event_changes")
        }
        let seen = try await tag()
        try await visit.answer(answer, plusOnes: plusOnes)
        #expect(try await approve(seenIn: seen).problem == "lost-update")
        #expect(try await visit.state == "pending \(plusOnes)")
      }
      let seen = try await tag()
      // The same again is no news, nor is a name.
      try await visit.answer("maybe", plusOnes: 5)
      #expect(try await approve(seenIn: seen).status == 200)
      #expect(try await visit.state == "maybe 5")
      // A repeated request.
      #expect(try await approve(seenIn: seen).status == 200)
      try await app.takeNotifications()
    }
  }

  @Test func `no guest is approved after the end of the event, although it is live for another day`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let visit = try await app.visit(link.token)
      _ = try await ben.join(link.token)
      try await app.takeNotifications()
      func approve(_ guest: String) async throws -> APIResponse {
        try await ana.send("POST", "events/\(event)/invitations/\(guest)/approve")
      }
      try await app.database.execute("UPDATE events SET live_until = now() + interval '23 hours'")
      for guest in ["\(visit.id)", ben.id] {
        let refused = try await approve(guest)
        #expect(refused.status == 409 && refused.problem == "event-archived")
      }
      #expect(try await visit.state == "pending 0")
      try await app.database.execute("UPDATE events SET live_until = now() + interval '25 hours'")
      for guest in ["\(visit.id)", ben.id] { #expect(try await approve(guest).status == 200) }
      #expect(try await visit.state == "going 0")
      try await app.takeNotifications()
    }
  }

  @Test func `a later request replaces an unread one about the same guest, and each guest has one`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true, "maxPlusOnes": 2}"#)
      let plain = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      // A minute lies between the answers.
      let zoe = try await app.visit(link.token)
      try await app.endMinuteOfVisitors()
      let yan = try await app.visit(link.token, name: "Yan")
      try await app.endMinuteOfVisitors()
      let xia = try await app.visit(plain.token, name: "Xia")
      try await app.fanOut()
      for (visit, answer, plusOnes) in [
        (zoe, "maybe", nil), (xia, "maybe", nil), (zoe, "going", 1), (xia, "declined", nil),
      ] {
        try await visit.answer(answer, plusOnes: plusOnes)
        try await app.endMinuteOfVisitors()
      }
      try await app.fanOut()
      let items = try await ana.get("notifications")["items"].array
      #expect(items.count == 3, "\(items)")
      let messages = Set(items.compactMap { $0["message"].string })
      #expect(messages.contains("Xia cannot come to “Picnic”.") && messages.contains("Yan asks to come to “Picnic”."))
      #expect(messages.contains("Zoe asks to come to “Picnic”, with 1 other."))
      _ = yan
      try await app.takeNotifications()
    }
  }
}
