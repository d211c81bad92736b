import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Mails to visitors: who gets them, how many, and what they say.
@Suite struct VisitorMailTests {
  /// Keeps what it is given.
  private final class Mailbox: MailSender {
    private let mails = Mutex<[OutgoingMail]>([])

    func send(_ mail: OutgoingMail) async throws { mails.withLock { $0.append(mail) } }

    func take() -> [OutgoingMail] {
      mails.withLock { mails in
        defer { mails = [] }
        return mails
      }
    }
  }

  /// Runs a worker until nothing is due.
  private func deliver(_ app: TestApp, to mailbox: Mailbox) async throws -> [OutgoingMail] {
    try await app.database.execute("UPDATE mails SET due_at = now() WHERE due_at > now()")
    let worker = NotificationWorker(
      app.dependencies, sender: LogSender(logger: .quiet), mailer: mailbox, concurrency: 4)
    try await worker.runOnce()
    return mailbox.take().filter { $0.type.hasPrefix("visitor-") }
  }

  private func json(_ mail: OutgoingMail) throws -> JSON {
    var json = JSONWriter()
    mail.write(to: &json)
    return try JSON(parsing: json.text.utf8)
  }

  @Test func `an unconfirmed address gets one mail without any text of the visitor or the host`() async throws {
    try await TestApp.run { app in
      let (ana, mailbox) = (try await app.signUp("ana"), Mailbox())
      let event = try await ana.createEvent("Secret title")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "email": "required"}"#)
      let visit = try await app.visit(link.token, name: "Buy pills", email: "Zoe@x.org")
      try await visit.answer("maybe")
      try await ana.edit(event, #"{"title": "Other"}"#)
      let mails = try await deliver(app, to: mailbox)
      #expect(mails.map(\.type) == ["visitor-confirm"] && mails[0].to == "Zoe@x.org")
      let data = try json(mails[0])["data"]
      #expect(data["username"] == .null && data["displayName"] == .null && data["event"] == .null)
      #expect(data["expiresAt"].string != nil)
      let text = try json(mails[0])
      #expect(!"\(text)".contains("pills") && !"\(text)".contains("Secret") && !"\(text)".contains("Ana"))
      let url = try #require(data["url"].string)
      #expect(url.hasPrefix("\(app.url)/g/\(visit.token)."))
      // The link from the page does not confirm; the one from the mail does, and by a button only.
      try await visit.act("confirm", expecting: 403)
      let mailed = Visit(app: app, token: String(url.split(separator: "/").last ?? ""))
      #expect(try await mailed.page().body.contains("Confirm my address"))
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE confirmed_at IS NOT NULL") == 0)
      for _ in 1...2 { try await mailed.act("confirm") }
      #expect(
        try await app.value("SELECT count(*) FROM visitors WHERE confirmed_at IS NOT NULL AND lapses_at IS NULL") == 1)
      #expect(try await !mailed.page().body.contains("Confirm my address"))
      // Hosts never see the address.
      let seen = try await ana.send("GET", "users/me/export").body
      #expect(!seen.contains("Zoe@x.org") && seen.contains("Buy pills"))
      try await app.takeNotifications()
    }
  }

  @Test func `a proof is bound to its address and visitor`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let form = try await app.formToken(of: link.token)
      var fields = ["form": form, "name": "Mal", "answer": "going", "email": "mal@x.org"]
      let first = Visit(app: app, token: try app.visitorToken(in: try await app.submit("/e/\(link.token)", fields)))
      let proven = try #require(try await app.takeMails().first { $0.to == "mal@x.org" }?.page)
      // The same form again, after the data was erased, with another person's address.
      try await first.act("erase", expecting: 200)
      fields["email"] = "ben@example.com"
      #expect(try app.visitorToken(in: try await app.submit("/e/\(link.token)", fields)) == first.token)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      // As if it had come back.
      let second = try await app.visit(link.token, email: "ben@example.com")
      try await app.database.execute("UPDATE visitors SET id = \(first.id) WHERE id = \(second.id)")
      try await Visit(app: app, token: proven).act("confirm", expecting: 403)
      let other = try await app.visit(link.token, email: "mal@x.org")
      let proof = String(proven.split(separator: ".").last ?? "")
      try await Visit(app: app, token: "\(other.token).\(proof)").act("confirm", expecting: 403)
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE confirmed_at IS NOT NULL") == 0)
      for wrong in ["\(first.token).", "\(first.token).\(proof)x", "\(first.token)..\(proof)"] {
        #expect(try await app.submit("/g/\(wrong)", ["do": "confirm"]).status == 404, "\(wrong)")
      }
      try await app.takeNotifications()
    }
  }

  /// A visitor's page without its token, and without what others have answered.
  private func plain(_ visit: Visit) async throws -> String {
    try await visit.page().body.replacing(/[A-Za-z0-9_-]{43}/, with: "").replacing(/\d+ going/, with: "")
      .replacing(/is deleted on [^,]+, [^,]+, [^,]+, [^,]+,/, with: "")
  }

  @Test func `the page is the same for addresses that Muster knows`() async throws {
    try await TestApp.run { app in
      let (ana, _) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      var pages: Set<String> = []
      for email in ["zoe@x.org", "ben@example.com"] {
        pages.insert(try await plain(app.visit(link.token, email: email)))
      }
      #expect(pages.count == 1, "\(pages)")
      try await app.takeNotifications()
    }
  }

  @Test func `six informative mails a day for each event, then one digest`() async throws {
    try await TestApp.run { app in
      let (ana, mailbox) = (try await app.signUp("ana"), Mailbox())
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.confirmedVisit(link.token, email: "zoe@x.org")
      let party = try await ana.createEvent("Party")["id"].string ?? ""
      let other = try await ana.createLink(to: party, #"{"kind": "answer"}"#)
      _ = try await app.confirmedVisit(other.token, email: "zoe@x.org")
      func edit(_ id: String, _ note: String) async throws { try await ana.edit(id, #"{"note": "\#(note)"}"#) }
      for number in 1...6 {
        try await edit(event, "Note \(number)")
        #expect(try await deliver(app, to: mailbox).map(\.type) == ["visitor-updated"])
      }
      // What a host does now is one digest, a day after the first mail, whatever its type.
      try await edit(event, "Seven")
      try await ana.edit(event, #"{"title": "Dive"}"#)
      _ = try await ana.send("PUT", "events/\(event)/invitations/\(visit.id)", #"{"status": "maybe"}"#)
      let due: SQL = "due_at BETWEEN now() + interval '23 hours' AND now() + interval '24 hours 2 minutes'"
      #expect(try await app.value("SELECT count(*) FROM mails") == 1)
      #expect(try await app.value("SELECT count(*) FROM mails WHERE type = 'mail-visitor-digest' AND \(due)") == 1)
      // Each event has its own count, and a cancellation always comes.
      try await edit(party, "Seven")
      let mails = try await deliver(app, to: mailbox)
      #expect(Set(mails.map(\.type)) == ["visitor-digest", "visitor-updated"])
      let digest = try json(try #require(mails.first { $0.type == "visitor-digest" }))["data"]
      #expect(digest["changes"].array.compactMap(\.string) == ["note", "title"])
      #expect(digest["event"]["title"].string == "Dive" && digest["event"]["answer"].string == "maybe")
      try await edit(event, "Eight")
      try await ana.cancelEvent(event)
      #expect(try await deliver(app, to: mailbox).map(\.type) == ["visitor-cancelled"])
      // A day later, the count starts over.
      try await app.database.execute(
        "UPDATE visitors SET informed_at = ARRAY(SELECT t - interval '49 hours' FROM unnest(informed_at) AS t)")
      try await edit(party, "Eight")
      #expect(try await deliver(app, to: mailbox).map(\.type) == ["visitor-updated"])
      try await app.takeNotifications()
    }
  }

  @Test func `a page and a mail name the hosts in the order of the API: by when they became hosts`() async throws {
    try await TestApp.run { app in
      let ((ana, ben), mailbox) = (try await app.friends("ana", "ben"), Mailbox())
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      // Not the order of their ids.
      let later = [ben, cleo].sorted { $0.id > $1.id }
      let event = try await ana.createEvent()["id"].string ?? ""
      for host in later { try await ana.addHost(host, to: event) }
      let names = try await ana.get("events/\(event)")["hosts"].array.compactMap { $0["displayName"].string }
      #expect(names == [ana, later[0], later[1]].map { $0.username.capitalized })
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      _ = try await app.confirmedVisit(link.token, email: "zoe@x.org")
      #expect(try await app.send("GET", "/e/\(link.token)").body.contains(names.joined(separator: ", ")))
      try await app.takeMails()
      try await ana.edit(event, #"{"title": "Dive"}"#)
      let mail = try #require(try await deliver(app, to: mailbox).first)
      #expect(try json(mail)["data"]["event"]["hosts"].array.compactMap(\.string) == names)
      try await app.takeNotifications()
    }
  }

  @Test func `confirmed visitors get changes by mail, one mail each, until they unsubscribe`() async throws {
    try await TestApp.run { app in
      let ((ana, ben), mailbox) = (try await app.friends("ana", "ben"), Mailbox())
      let event = try await ana.createEvent("Swim", inviting: [ben], capacity: 1)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await ben.answer("going", to: event)
      let visit = try await app.confirmedVisit(link.token, email: "zoe@x.org")
      let other = try await app.confirmedVisit(link.token, name: "Yan", "declined", email: "yan@x.org")
      _ = try await app.visit(link.token, name: "Xia", email: "xia@x.org")
      try await app.takeMails()
      try await ana.edit(event, #"{"title": "Dive"}"#)
      try await ana.edit(event, #"{"note": "Deep"}"#)
      try await ana.edit(event, #"{"title": "Dive deep"}"#)
      var mails = try await deliver(app, to: mailbox)
      #expect(mails.map(\.type) == ["visitor-updated"] && mails.map(\.to) == ["zoe@x.org"])
      let data = try json(mails[0])["data"]
      #expect(data["displayName"].string == "Zoe" && data["event"]["title"].string == "Dive deep")
      #expect(data["changes"].array.compactMap(\.string) == ["note", "title"])
      #expect(data["event"]["answer"].string == "waitlisted" && data["event"]["hosts"][0].string == "Ana")
      try await ben.answer("declined", to: event)
      mails = try await deliver(app, to: mailbox)
      #expect(mails.map(\.type) == ["visitor-promoted"])
      try await app.database.execute(
        "UPDATE events SET start_time = now() + interval '59 minutes', end_time = NULL, remind_at = now()")
      mails = try await deliver(app, to: mailbox)
      #expect(mails.map(\.type) == ["visitor-reminder"] && mails.map(\.to) == ["zoe@x.org"])
      // RFC 8058: one POST, without a redirect. A GET changes nothing.
      let letter = try #require(mails[0].letter)
      let path = try #require(letter.unsubscribeURL).replacing(app.url, with: "")
      #expect(try await app.send("GET", path).body.contains("Stop sending me e-mails"))
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE unsubscribed_at IS NOT NULL") == 0)
      #expect(try await app.submit(path, ["List-Unsubscribe": "One-Click"]).status == 200)
      #expect(
        try await app.send("POST", path, body: "x", headers: [("Content-Type", "multipart/form-data")]).status == 200)
      #expect(try await visit.page().body.contains("You will get no more e-mails about this event."))
      try await other.answer("maybe")
      try await ana.cancelEvent(event)
      mails = try await deliver(app, to: mailbox)
      #expect(mails.map(\.type) == ["visitor-cancelled"] && mails.map(\.to) == ["yan@x.org"])
      #expect(try json(mails[0])["data"]["event"]["status"].string == "cancelled")
      #expect(try await app.value("SELECT count(*) FROM mails WHERE visitor_id IS NOT NULL") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a visitor who has unsubscribed before confirming gets no mail that asks for it`() async throws {
    try await TestApp.run { app in
      let (ana, mailbox) = (try await app.signUp("ana"), Mailbox())
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token, email: "zoe@x.org")
      try await visit.act("unsubscribe")
      #expect(try await deliver(app, to: mailbox).isEmpty)
      #expect(try await app.value("SELECT count(*) FROM mails WHERE visitor_id IS NOT NULL") == 0)
      // Asking again does not bring it back.
      try await visit.act("send-again", ["asked": "1"])
      #expect(try await deliver(app, to: mailbox).isEmpty)
      // One that was already waiting for its next attempt.
      let other = try await app.visit(link.token, name: "Yan", email: "yan@x.org")
      try await app.database.execute("UPDATE mails SET attempts = 1")
      #expect(try await app.submit("\(other.path)/unsubscribe", ["List-Unsubscribe": "One-Click"]).status == 200)
      #expect(try await deliver(app, to: mailbox).isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `when the mail is sent, the link still takes answers, of a host who may cause mails`() async throws {
    for change in ["nothing", "expired", "shows only", "no host", "unverified", "old enough"] {
      try await TestApp.run(hostAge: 86_400) { app in
        let (ana, mailbox) = (try await app.signUp("ana"), Mailbox())
        let event = try await ana.createEvent()["id"].string ?? ""
        let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
        try await app.takeMails()
        let visit = try await app.visit(link.token, email: "zoe@x.org")
        let unverified: SQL = "UPDATE users SET email_verified_at = NULL"
        switch change {
        // After the answer.
        case "expired": try await app.database.execute("UPDATE share_links SET expires_at = now()")
        case "shows only":
          let response = try await ana.send("PATCH", "events/\(event)/links/\(link.id)", #"{"kind": "view"}"#)
          #expect(response.status == 200)
        case "no host":
          let ben = try await app.signUp("ben")
          try await app.database.execute("UPDATE share_links SET creator_id = \(ben.userID)")
        case "unverified": try await app.database.execute(unverified)
        case "old enough":
          try await app.database.execute(unverified)
          try await app.database.execute("UPDATE users SET created_at = now() - interval '25 hours'")
        default: break
        }
        let isSent = ["nothing", "expired", "old enough"].contains(change)
        #expect(try await deliver(app, to: mailbox).map(\.type) == (isSent ? ["visitor-confirm"] : []), "\(change)")
        // Asking again says at once that no mail comes.
        try await visit.act("send-again", ["asked": "1"])
        let isHeld = try await visit.page().body.contains("We have not sent you an e-mail")
        #expect(isHeld == (!isSent && change != "no host"), "\(change)")
        try await app.takeNotifications()
      }
    }
  }

  @Test func `a deleted account's coming event is cancelled for its visitors, and goes with the last of them`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, mailbox) = (try await app.signUp("ana"), Mailbox())
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.confirmedVisit(link.token, email: "zoe@x.org")
      try await ana.deleteAccount()
      #expect(try await visit.page().body.contains("This event is cancelled."))
      #expect(try await deliver(app, to: mailbox).map(\.type) == ["visitor-cancelled"])
      try await visit.act("erase", expecting: 200)
      #expect(try await app.value("SELECT count(*) FROM events") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `an unconfirmed answer ends after a day, and data 90 days after the event`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben], capacity: 1)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxGuests": 2}"#)
      let visit = try await app.visit(link.token, email: "zoe@x.org")
      try await ben.answer("going", to: event)
      try await app.takeNotifications()
      func lapse() async throws -> Int {
        try await app.service.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
      }
      #expect(try await lapse() == 0)
      try await app.database.execute("UPDATE visitors SET lapses_at = lapses_at - interval '24 hours'")
      let stale = try await ana.stale { _ = try await lapse() }
      #expect(stale == [.events, .notifications])
      #expect(try await visit.page().status == 404)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["waitlist-promoted", "waitlist-promoted"], "\(received)")
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["joined"].int == 0)
      // Confirmed and without an address, they stay until long after the event.
      _ = try await app.confirmedVisit(link.token, email: "yan@x.org")
      _ = try await app.visit(link.token, name: "Xia")
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE lapses_at IS NULL") == 2)
      try await app.database.execute("UPDATE events SET live_until = now() - interval '1 minute'")
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
      let days: Int? = try await app.value("SELECT max(extract(day FROM lapses_at - now()))::integer FROM visitors")
      #expect(days == 88)
      #expect(try await lapse() == 0)
      try await app.database.execute("UPDATE visitors SET lapses_at = lapses_at - interval '90 days'")
      #expect(try await lapse() == 1)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 0)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
