import Foundation
import Logging
import Postgres
import TestSupport
import Testing

@testable import App

/// One mailbox has one account and one visitor, however its address is spelled, and no spelling reaches another mailbox.
@Suite struct MailboxTests {
  /// Spellings of one mailbox.
  private static let same = [
    "ana@bu\u{308}cher.example", "ANA@b\u{fc}cher.example", "Ana@XN--BCHER-KVA.example", "ana@B\u{dc}CHER.EXAMPLE",
    "aNa@b\u{fc}cher\u{3002}example", "ana@b\u{ff55}\u{308}cher.example",
  ]
  /// Addresses that some rule of folding takes for `kim@likes.example`, but that are other mailboxes.
  private static let others = [
    "k\u{131}m@likes.example", "K\u{130}M@likes.example", "ki\u{307}m@likes.example", "kim@l\u{131}kes.example",
    "KIM@L\u{130}KES.example", "\u{43a}im@likes.example",
  ]
  /// Addresses that are not accepted, because a reader or a mail server may take them for `kim@likes.example`.
  private static let refused = [
    "\u{212a}im@likes.example", "\u{ff4b}im@likes.example", "\u{1d424}im@likes.example", "kim@likes.example.",
    "kim@likes.example\u{3002}", "-kim@likes.example", "kim@likes_.example", "kim@lik\u{200d}es.example",
  ]

  private func register(_ app: TestApp, _ username: String, _ email: String) async throws -> APIResponse {
    try await app.send(
      "POST", "auth/register",
      body: #"{"username": "\#(username)", "email": "\#(email)", "password": "correct horse \#(username)"}"#)
  }

  /// Registers a user, who verifies the address.
  private func verified(_ app: TestApp, _ username: String, _ email: String) async throws -> Phone {
    let response = try await register(app, username, email)
    #expect(response.status == 201, "\(response.body)")
    let phone = try Phone(app, username, response)
    #expect(try await phone.verify(try await app.takeToken("mail-verify-email")).status == 204)
    return phone
  }

  private func merge(_ app: TestApp) async throws {
    while try await Visitor.mergeMarked(in: app.service, logger: .quiet) > 0 {}
  }

  /// An event with a link that anyone may answer.
  private func gather(_ app: TestApp) async throws -> (host: Phone, event: String, link: String) {
    let host = try await app.signUp("host")
    let event = try await host.createEvent("Swim")["id"].string ?? ""
    let link = try await host.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 5, "approval": false}"#)
    try await app.takeMails()
    return (host, event, link.token)
  }

  // MARK: Accounts

  @Test func `all spellings of a mailbox are one account`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let first = try await register(app, "ana", Self.same[0])
      #expect(first.json["user"]["email"].string == "ana@xn--bcher-kva.example")
      #expect(try await app.takeMails().map(\.to) == ["ana@xn--bcher-kva.example"])
      for spelling in Self.same {
        let second = try await register(app, "ben", spelling)
        #expect(second.status == 409 && second.problem == "email-taken", "\(spelling): \(second.body)")
        #expect(try await app.logIn(spelling, "correct horse ana").status == 200, "\(spelling)")
        _ = try await app.askForReset(spelling)
        #expect(try await app.takeMails().map(\.to) == ["ana@xn--bcher-kva.example"], "\(spelling)")
      }
      for spelling in Self.same.prefix(4) {
        let code = try await app.takeCode(of: spelling).code
        #expect(try await app.confirmCode(code, of: Self.same[1]).status == 200, "\(spelling)")
      }
      let ben = try await app.signUp("ben")
      for spelling in Self.same {
        let body = #"{"email": "\#(spelling)", "currentPassword": "correct horse ben"}"#
        #expect(try await ben.send("PATCH", "users/me", body).status == 409, "\(spelling)")
      }
    }
  }

  @Test func `an address that only looks like another one is another mailbox, or is refused`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let kim = try await verified(app, "kim", "kim@likes.example")
      for (index, email) in Self.others.enumerated() {
        #expect(try await app.logIn(email, kim.password).status == 401, "\(email)")
        #expect(try await app.askForCode(email).status == 202, "\(email)")
        #expect(try await app.askForReset(email).status == 202, "\(email)")
        #expect(try await app.takeMails().isEmpty, "\(email)")
        let other = try await register(app, "other\(index)", email)
        #expect(other.status == 201, "\(email): \(other.body)")
        #expect(try await app.takeMails().map(\.to) == [try EmailAddress(parsing: email).text])
      }
      for email in Self.refused {
        let response = try await register(app, "another", email)
        #expect(response.status == 422 && response.badFields == ["email"], "\(email): \(response.body)")
        #expect(try await app.askForCode(email).badFields == ["email"], "\(email)")
        #expect(try await app.askForReset(email).badFields == ["email"], "\(email)")
        #expect(try await app.logIn(email, kim.password).status == 401, "\(email)")
        let body = #"{"email": "\#(email)", "currentPassword": "correct horse kim"}"#
        #expect(try await kim.send("PATCH", "users/me", body).badFields == ["email"], "\(email)")
      }
      #expect(try await app.logIn("\u{212a}im", kim.password).status == 401)
      #expect(try await register(app, "\u{212a}ai", "kai@x.example").badFields == ["username"])
      #expect(try await app.logIn("KIM", kim.password).status == 200)
      #expect(try await app.value("SELECT count(*) FROM users") == 1 + Self.others.count)
    }
  }

  @Test func `all spellings of a login or an address are counted together`() async throws {
    try await TestApp.run { app in
      _ = try await register(app, "ana", Self.same[0])
      try await app.takeMails()
      for spelling in Self.same { #expect(try await app.logIn(spelling, "wrong horse").status == 401, "\(spelling)") }
      #expect(try await app.logIn(Self.same[2], "wrong horse").status == 429)
      // Beyond the limit, nothing is mailed.
      for spelling in Self.same { #expect(try await app.askForReset(spelling).status == 202, "\(spelling)") }
      let mails = try await app.takeMails().count
      for spelling in Self.same { #expect(try await app.askForReset(spelling).status == 202, "\(spelling)") }
      #expect(try await app.takeMails().isEmpty && mails > 0)
      for name in ["ana", "ANA", "aNa"] { _ = try await app.logIn(name, "wrong horse") }
      let counts = try await app.value("SELECT count(*) FROM throttles WHERE failures > 0", as: Int.self)
      _ = try await app.logIn("Ana", "wrong horse")
      #expect(try await app.value("SELECT count(*) FROM throttles WHERE failures > 0") == counts)
    }
  }

  // MARK: Visitors

  @Test func `a visitor at another mailbox changes nothing for an account, however alike the addresses look`()
    async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (host, event, link) = try await gather(app)
      let mike = try await verified(app, "mike", "mike@gmail.example")
      try await app.befriend(host, mike)
      let invited = try await host.send("POST", "events/\(event)/invitations", #"{"userIds": ["\#(mike.id)"]}"#)
      #expect(invited.status == 200, "\(invited.body)")
      try await mike.answer("going", to: event)
      for email in ["mike@gma\u{130}l.example", "MIKE@gmai\u{307}l.example", "m\u{131}ke@gmail.example"] {
        let visit = try await app.confirmedVisit(link, name: "Mallory", "declined", email: email)
        try await merge(app)
        #expect(try await visit.state == "declined 0", "\(email)")
        #expect(try await mike.get("events/\(event)")["myStatus"].string == "going", "\(email)")
      }
      for email in ["m\u{ff49}ke@gmail.example", "mi\u{212a}e@gmail.example"] {
        let fields = [
          "form": try await app.formToken(of: link), "name": "Mallory", "answer": "declined", "email": email,
        ]
        let response = try await app.submit("/e/\(link)", fields)
        #expect(response.status == 422 && response.body.contains("The e-mail address must not contain"), "\(email)")
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `an account at another mailbox takes no visitor over, and leaves the address free`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (_, event, link) = try await gather(app)
      let visit = try await app.confirmedVisit(link, name: "Dora", plusOnes: 1, email: "dora@github.example")
      for (index, email) in ["dora@g\u{130}thub.example", "dora@g\u{131}thub.example"].enumerated() {
        let thief = try await verified(app, "thief\(index)", email)
        try await merge(app)
        #expect(try await visit.state == "going 1", "\(email)")
        #expect(try await thief.send("GET", "events/\(event)").status == 404, "\(email)")
      }
      let dora = try await verified(app, "dora", "Dora@GitHub.Example")
      try await merge(app)
      #expect(try await visit.state == "gone")
      let shown = try await dora.get("events/\(event)")
      #expect(shown["myStatus"].string == "going" && shown["myPlusOnes"].int == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `an account gets the visitors with all spellings of its address`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (_, _, link) = try await gather(app)
      let ana = try await verified(app, "ana", Self.same[0])
      for spelling in Self.same.prefix(3) {
        let visit = try await app.confirmedVisit(link, email: spelling)
        try await merge(app)
        #expect(try await visit.state == "gone", "\(spelling)")
      }
      #expect(try await ana.get("events")["items"].array.count == 1)
      try await app.takeNotifications()
    }
  }

  // MARK: Providers

  @Test func `a provider's address is compared as any other`() async throws {
    try await TestApp.runWithProviders { app, identity in
      _ = try await verified(app, "ana", Self.same[0])
      for (index, spelling) in Self.same.enumerated() {
        let token = try identity.token(.google, "\(index)", IdentityServer.email(spelling))
        let response = try await app.signIn(.google, token)
        #expect(response.status == 409 && response.problem == "email-belongs-to-account", "\(spelling)")
      }
      for (index, email) in Self.others.enumerated() {
        let token = try identity.token(.google, "other \(index)", IdentityServer.email(email))
        let response = try await app.signIn(.google, token)
        #expect(response.json["isNew"].bool == true, "\(email): \(response.body)")
        let stored = try EmailAddress(parsing: email).text
        #expect(response.json["user"]["email"].string == stored, "\(email)")
      }
    }
  }

  @Test func `a provider's address that is refused is not stored, and the sign-in succeeds`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let addresses = Self.refused + ["ana", "a@b", "\(String(repeating: "a", count: 300))@x.example"]
      for (index, email) in addresses.enumerated() {
        for provider in [IdentityProvider.Name.apple, .google] {
          let token = try identity.token(provider, "\(index)", IdentityServer.email(email))
          let response = try await app.signIn(provider, token)
          #expect(response.status == 200 && response.json["isNew"].bool == true, "\(email): \(response.body)")
          #expect(response.json["user"]["email"] == .null, "\(email)")
          #expect(response.json["user"]["emailVerified"].bool == false, "\(email)")
        }
      }
    }
  }
}
