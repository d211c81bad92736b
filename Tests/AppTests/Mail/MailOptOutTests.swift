import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// One click ends all mails that anyone can cause, for good.
@Suite struct MailOptOutTests {
  /// Runs a worker until nothing is due. Returns the mails that it has handed to the webhook.
  private func deliver(_ app: TestApp, _ sink: WebhookSink) async throws -> [JSON] {
    let before = sink.deliveries.count
    let worker = NotificationWorker(
      app.dependencies, sender: LogSender(logger: .quiet), mailer: app.dependencies.webhookMailer ?? NoMailer(),
      concurrency: 4)
    try await worker.runOnce()
    return sink.deliveries.dropFirst(before).map(\.json)
  }

  private func path(_ mail: JSON, _ app: TestApp) throws -> String {
    try #require(mail["data"]["unsubscribeUrl"].string).replacing(app.url, with: "")
  }

  private func link(_ app: TestApp, by host: Phone) async throws -> String {
    let event = try await host.createEvent()["id"].string ?? ""
    return try await host.createLink(to: event, #"{"kind": "answer"}"#).token
  }

  @Test func `every mail to an unproven address has the link, a GET changes nothing, and a POST ends them all`()
    async throws
  {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment.merging(["MUSTER_THROTTLING": "off"]) { $1 }) { app in
        let ana = try await app.signUp("ana", isVerified: false)
        let token = try await link(app, by: ana)
        _ = try await app.askForCode("ana@example.com")
        _ = try await app.askForReset("ana@example.com")
        try await app.visit(token, email: "Ana+x@example.com")
        let mails = try await deliver(app, sink)
        #expect(
          Set(mails.map { $0["type"].string }) == [
            "mail.verify-email", "mail.sign-in-code", "mail.reset-password", "mail.visitor-confirm",
          ])
        let paths = Set(try mails.map { try path($0, app) })
        #expect(paths.count == 1, "\(paths)")
        let page = try #require(paths.first)
        let before = try await app.contents()
        let shown = try await app.send("GET", page)
        #expect(shown.status == 200 && shown.body.contains("Never write to this address again"))
        #expect(try await app.contents() == before)
        let opted = try await app.submit(page, ["List-Unsubscribe": "One-Click"])
        #expect(opted.status == 200 && opted.body.contains("We will not write to this address again"))
        // Queued before the click, and asked for after it, under any spelling.
        try await app.visit(token, email: "ana@example.com")
        _ = try await app.askForCode("ana@example.com")
        _ = try await app.askForReset("ana@example.com")
        let again = try await app.send(
          "POST", "auth/register",
          body: #"{"username": "anna", "email": "ana+2@example.com", "password": "correct horse anna"}"#)
        #expect(again.status == 201)
        #expect(try await app.takeMails().isEmpty)
        // The page does not say so: it could be asked about anybody.
        let visit = try await app.visit(token, email: "ANA@example.com")
        #expect(try await visit.page().body.contains("We sent an e-mail to your address."))
        // A reader of the mail may change their mind.
        #expect(try await app.submit(page, ["do": "allow"]).body.contains("We may write to this address again"))
        try await app.visit(token, email: "ana@example.com")
        #expect(try await deliver(app, sink).map { $0["type"].string } == ["mail.visitor-confirm"])
        for wrong in ["/m/wrong", page + "x", "/m/" + String(page.dropFirst(3).reversed())] {
          #expect(try await app.send("GET", wrong).status == 404)
          #expect(try await app.submit(wrong, [:]).status == 404)
        }
        try await app.takeNotifications()
      }
    }
  }

  @Test func `no mail to an unproven address has a text that a user has chosen, whatever causes the mail`() async throws
  {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment.merging(["MUSTER_THROTTLING": "off"]) { $1 }) { app in
        let ana = try await app.signUp("ana", displayName: "Buy pills", isVerified: false)
        let event = try await ana.createEvent("Pills party")["id"].string ?? ""
        let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
        _ = try await app.askForCode("ana@example.com")
        _ = try await app.askForReset("ana@example.com")
        let visit = try await app.visit(link.token, name: "Cheap pills", email: "zoe@x.org")
        try await visit.act("send-again", ["asked": "1"])
        // Another name, and another address. The old one, which no one has proven, also gets a mail.
        try await ana.editProfile(#"{"displayName": "More pills"}"#)
        try await ana.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(ana.password)"}"#)
        var mails = try await deliver(app, sink)
        let change = try #require(mails.last { $0["type"].string == "mail.verify-email" })
        #expect(change["data"]["proves"].string == "change")
        #expect(try await ana.verify(try #require(change["data"]["token"].string)).status == 204)
        mails += try await deliver(app, sink)
        #expect(
          Set(mails.map { $0["type"].string }) == [
            "mail.verify-email", "mail.sign-in-code", "mail.reset-password", "mail.visitor-confirm",
            "mail.email-changed",
          ])
        for mail in mails {
          #expect(mail["data"]["displayName"] == .null && !"\(mail)".lowercased().contains("pills"), "\(mail)")
        }
        // The owner of a proven address reads it.
        _ = try await app.askForCode("new@example.com")
        #expect(try await deliver(app, sink).map { $0["data"]["displayName"].string } == ["More pills"])
        try await app.takeNotifications()
      }
    }
  }

  @Test func `a click between the form and the mail stops the mail`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        let ana = try await app.signUp("ana")
        let token = try await link(app, by: ana)
        try await app.visit(token, email: "zoe@x.org")
        let mailbox = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")))
        let anas = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("ana@example.com")))
        for token in [mailbox, anas] { #expect(try await app.submit("/m/\(token)", [:]).status == 200) }
        #expect(try await deliver(app, sink).isEmpty)
        #expect(try await app.value("SELECT count(*) FROM mails") == 0)
        try await app.takeNotifications()
      }
    }
  }

  @Test func `event, link and host are checked again when the mail is sent`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
        _ = try await deliver(app, sink)
        for end in ["revoke", "cancel", "archive", "delete"] {
          let host = end == "delete" ? ben : ana
          let event = try await host.createEvent()["id"].string ?? ""
          let link = try await host.createLink(to: event, #"{"kind": "answer"}"#)
          try await app.visit(link.token, email: "\(end)@x.org")
          switch end {
          case "revoke": _ = try await host.send("DELETE", "events/\(event)/links/\(link.id)")
          case "cancel": try await host.cancelEvent(event)
          case "archive":
            try await app.database.execute("UPDATE events SET live_until = now() WHERE id = \(Event.ID(event))")
          default: try await host.deleteAccount()
          }
          #expect(try await deliver(app, sink).isEmpty, "\(end)")
        }
        try await app.takeNotifications()
      }
    }
  }

  @Test func `an opt-out outlives every rotation of keys`() async throws {
    let (old, new) = (SigningKeys.generate(), SigningKeys.generate())
    try await TestApp.run(["MUSTER_ADDRESS_KEYS": old], isShared: false) { app in
      let ana = try await app.signUp("ana")
      let token = try await link(app, by: ana)
      let optOut = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")))
      #expect(try await app.submit("/m/\(optOut)", [:]).status == 200)
      try await app.takeMails()
      // New keys for tokens, and another one in front for addresses.
      let rotated = [
        "MUSTER_ACCESS_TOKEN_KEYS": SigningKeys.generate(),
        "MUSTER_REFRESH_TOKEN_KEYS": "\(SigningKeys.generate()),\(TestApp.refreshTokenKeys)",
        "MUSTER_ADDRESS_KEYS": "\(new),\(old)", "MUSTER_THROTTLING": "off",
      ]
      try await ServiceProcess.run(of: app, rotated) { other in
        for email in ["zoe+1@x.org", "yan@x.org"] { try await other.visit(token, email: email) }
        #expect(try await app.takeMails().map(\.to) == ["yan@x.org"])
        // The link in the old mail still works.
        #expect(try await other.submit("/m/\(optOut)", ["do": "allow"]).status == 200)
        try await other.visit(token, email: "zoe@x.org")
        #expect(try await app.takeMails().map(\.to) == ["zoe@x.org"])
      }
      try await app.takeNotifications()
    }
  }

  @Test func `the database has no address of a mail, only MACs`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.visit(try await link(app, by: ana), email: "zoe@x.org")
      let token = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")))
      #expect(try await app.submit("/m/\(token)", [:]).status == 200)
      for table in ["mail_attempts", "mail_optouts"] {
        let rows: [String] = try await app.database.rows("SELECT t::text FROM \(unescaped: table) AS t").map {
          try $0[0]
        }
        let plain = ["zoe", "x.org", "example", "127.0.0"].flatMap {
          [$0, Data($0.utf8).map { String(format: "%02x", $0) }.joined()]
        }
        #expect(!rows.isEmpty && !rows.contains { row in plain.contains { row.contains($0) } }, "\(table)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `the owner of a proven address lifts the opt-out by asking for a code in a session, and no one else does`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana", isVerified: false), try await app.signUp("ben"))
      let mails = try await app.takeMails()
      let verification = try #require(mails.first { $0.to == "ana@example.com" }?.token)
      let token = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("ana@example.com")))
      func optedOut() async throws -> Bool { try await MailOptOuts.count(in: app.database) == 1 }
      func ask(as phone: Phone?) async throws -> [String] {
        let response = try await app.send(
          "POST", "auth/code", body: #"{"email": "ana@example.com"}"#, token: phone?.accessToken)
        #expect(response.status == 202)
        return try await app.takeMails().map(\.type)
      }
      #expect(try await app.submit("/m/\(token)", [:]).status == 200)
      // An account that has only typed the address does not own it.
      for phone in [nil, ben, ana] { #expect(try await ask(as: phone).isEmpty) }
      #expect(try await optedOut())
      #expect(try await ana.verify(verification).status == 204)
      // Its owner gets the code that anyone may ask for, and the opt-out from strangers' forms stays.
      for phone in [nil, ben] { #expect(try await ask(as: phone) == ["mail-sign-in-code"]) }
      #expect(try await optedOut())
      #expect(try await ask(as: ana) == ["mail-sign-in-code"])
      #expect(try await !optedOut())
    }
  }

  @Test func `operators see how many addresses have opted out, and whether one has`() async throws {
    try await TestApp.run { app in
      let token = try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")))
      #expect(try await app.submit("/m/\(token)", [:]).status == 200)
      func run(_ arguments: String...) async throws -> String {
        let program = try await Program(
          Program.path("muster"), ["mail", "suppressed"] + arguments, environment: Muster.environment(app.databaseURL),
          in: "/tmp")
        #expect(try await program.exitStatus() == 0, "\(program.standardError)")
        return program.standardOutput.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      #expect(try await run() == "1 suppressed")
      #expect(try await run("Zoe+a@x.org") == "suppressed")
      #expect(try await run("yan@x.org") == "not suppressed")
      #expect(try await run("yan@x.org", "--json").contains(#""isSuppressed" : false"#))
    }
  }
}
