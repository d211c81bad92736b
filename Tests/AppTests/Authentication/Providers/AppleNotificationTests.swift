import Foundation
import Logging
import Postgres
import Synchronization
import Testing

@testable import App

/// Apple's notifications about its users.
@Suite struct AppleNotificationTests {
  private func send(_ app: TestApp, _ payload: String) async throws -> APIResponse {
    try await app.send("POST", "auth/apple/notifications", body: #"{"payload": "\#(payload)"}"#)
  }

  private func accept(
    _ app: TestApp, _ payload: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let response = try await send(app, payload)
    #expect(response.status == 200 && response.json == .object([:]), "\(response.body)", sourceLocation: sourceLocation)
  }

  /// Signs in with Apple for the first time.
  private func signUp(
    _ app: TestApp, _ identity: IdentityServer, _ subject: String, email: String? = nil
  ) async throws -> Phone {
    let token = try identity.token(.apple, subject, email.map { IdentityServer.email($0) } ?? [:])
    let response = try await app.signIn(.apple, token)
    #expect(response.json["isNew"].bool == true, "\(response.body)")
    return try Phone(app, response.json["user"]["username"].string ?? "", response)
  }

  private func sessionsHaveEnded(_ phone: Phone) async throws -> Bool {
    let refreshed = try await phone.refresh()
    return refreshed.status == 401 && refreshed.problem == "session-ended"
  }

  private static let now = Int(Date().timeIntervalSince1970)

  /// Takes all mails, and keeps their addresses.
  private final class Mailbox: MailSender {
    private let addresses = Mutex<[String]>([])

    func send(_ mail: OutgoingMail) async throws { addresses.withLock { $0.append(mail.to) } }

    func take() -> [String] {
      addresses.withLock { addresses in
        defer { addresses = [] }
        return addresses
      }
    }
  }

  // MARK: Revoked

  @Test func `a revoked consent ends the sessions and unlinks the identity, and other ways in remain`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      #expect(try await ana.link(.apple, try identity.token(.apple, "ana"), ["authorizationCode": "c"]).status == 204)
      #expect(try await ana.link(.google, try identity.token(.google, "ana")).status == 204)
      let other = try await ana.signInAgain()
      let ben = try await signUp(app, identity, "ben")
      try await app.takeMails()
      _ = identity.takeForms()
      let payload = try identity.notification("consent-revoked", of: "ana")
      try await accept(app, payload)
      for phone in [ana, other] { #expect(try await sessionsHaveEnded(phone)) }
      #expect(try await app.takeMails().map(\.type) == ["mail-identity-unlinked"])
      // Apple has voided the grant.
      #expect(try await app.value("SELECT count(*) FROM apple_revocations") == 0)
      let back = try await ana.signInAgain()
      #expect(try await back.get("users/me")["identities"] == .array([.string("google")]))
      #expect(try await app.value("SELECT count(*) FROM revoked_identities") == 0)
      // The identity no longer signs in to the account.
      let again = try await app.signIn(.apple, try identity.token(.apple, "ana"))
      #expect(again.json["isNew"].bool == true && again.json["user"]["id"].string != ana.id)
      // Repeated, it is older than the new link.
      try await app.database.execute("UPDATE identities SET created_at = created_at + interval '1 minute'")
      let contents = try await app.contents()
      try await accept(app, payload)
      #expect(try await app.contents() == contents)
      #expect(try await ben.send("GET", "users/me").status == 200)
    }
  }

  @Test func `the phone of a user whose identity is unlinked learns that the profile has changed`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      #expect(try await ana.link(.apple, try identity.token(.apple, "ana")).status == 204)
      let stamps = try await ana.refreshLists()
      try await accept(app, try identity.notification("consent-revoked", of: "ana"))
      #expect(try await ana.signInAgain().stale(stamps) == [.profile])
    }
  }

  @Test(arguments: ["consent-revoked", "account-delete", "account-deleted"])
  func `a user whom nothing else lets in gets the same account at the next login with Apple`(
    _ type: String
  ) async throws {
    try await TestApp.runWithProviders { app, identity in
      for (subject, email) in [("none", nil), ("relay", "x1@privaterelay.appleid.com")] {
        let ana = try await signUp(app, identity, subject, email: email)
        let event = try await ana.createEvent()["id"].string ?? ""
        let payload = try identity.notification(type, of: subject)
        try await accept(app, payload)
        #expect(try await sessionsHaveEnded(ana), "\(subject)")
        #expect(try await app.value("SELECT count(*) FROM identities WHERE subject = \(subject)") == 0)
        // An address is not enough: only Apple's id for the person is.
        let stranger = try await app.signIn(.apple, try identity.token(.apple, "stranger of \(subject)"))
        #expect(stranger.json["user"]["id"].string != ana.id)
        try await app.takeMails()

        let claims = email.map { IdentityServer.email($0) } ?? [:]
        let response = try await app.signIn(.apple, try identity.token(.apple, subject, claims))
        #expect(
          response.json["user"]["id"].string == ana.id && response.json["isNew"].bool == false, "\(response.body)")
        #expect(response.json["user"]["identities"] == .array([.string("apple")]))
        let back = try Phone(app, ana.username, response)
        #expect(try await back.get("events/\(event)")["myRole"].string == "creator")
        #expect(try await app.takeMails().map(\.type) == (email == nil ? [] : ["mail-identity-linked"]))
        #expect(try await app.value("SELECT count(*) FROM revoked_identities") == 0)
        // The repeated one is about the time before.
        try await app.database.execute("UPDATE identities SET created_at = created_at + interval '1 minute'")
        try await accept(app, payload)
        #expect(try await back.send("GET", "users/me").status == 200)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `with a verified address outside of Apple's relay, codes are the way in`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(app, identity, "ana", email: "ana@x.example")
      try await accept(app, try identity.notification("consent-revoked", of: "ana"))
      #expect(try await app.takeMails().map(\.to) == ["ana@x.example"])
      let token = try identity.token(.apple, "ana", IdentityServer.email("ana@x.example"))
      #expect(try await app.signIn(.apple, token).problem == "email-belongs-to-account")
      let code = try await app.takeCode(of: "ana@x.example").code
      let back = try await app.confirmCode(code, of: "ana@x.example")
      #expect(back.json["user"]["id"].string == ana.id)
      #expect(back.json["user"]["identities"] == .array([]))
    }
  }

  @Test func `a reset forgets a revoked identity, so that an intruder who linked it cannot come back`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(app, identity, "thief", email: "x1@privaterelay.appleid.com")
      try await accept(app, try identity.notification("consent-revoked", of: "thief"))
      _ = try await app.askForReset("x1@privaterelay.appleid.com")
      let token = try await app.takeToken("mail-reset-password")
      #expect(try await app.confirmReset(token, "correct horse battery").status == 204)
      #expect(try await app.signIn(.apple, try identity.token(.apple, "thief")).json["user"]["id"].string != ana.id)
    }
  }

  @Test func `the reader of an unverified address cannot claim an account whose identity is revoked`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let body = #"{"username": "ana", "email": "mistyped@x.example"}"#
      let ana = try Phone(app, "ana", try await app.send("POST", "auth/register", body: body))
      let mailed = try await app.takeToken("mail-verify-email")
      let link = try await ana.send("POST", "auth/apple/link", #"{"idToken": "\#(try identity.token(.apple, "ana"))"}"#)
      #expect(link.status == 204, "\(link.body)")
      try await accept(app, try identity.notification("consent-revoked", of: "ana"))
      try await app.takeMails()
      #expect(try await app.verify(mailed).status == 401)
      let code = try await app.takeCode(of: "mistyped@x.example")
      #expect(try await app.confirmCode(byToken: code.token).status == 409)
      let google = try identity.token(.google, "reader", IdentityServer.email("mistyped@x.example"))
      #expect(try await app.signIn(.google, google).json["user"]["id"].string != ana.id)
      let back = try await app.signIn(.apple, try identity.token(.apple, "ana"))
      #expect(back.json["user"]["id"].string == ana.id, "\(back.body)")
    }
  }

  @Test func `a deleted account leaves no revoked identity behind`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(app, identity, "ana")
      try await accept(app, try identity.notification("account-delete", of: "ana"))
      try await app.database.change { try await User.erase(ana.userID, by: nil, in: $0) }
      #expect(try await app.value("SELECT count(*) FROM revoked_identities") == 0)
      #expect(try await app.signIn(.apple, try identity.token(.apple, "ana")).json["isNew"].bool == true)
    }
  }

  @Test func `of a revoked consent and concurrent logins, each leaves the account whole`() async throws {
    try await TestApp.runWithProviders(["MUSTER_THROTTLING": "off"]) { app, identity in
      let ana = try await signUp(app, identity, "ana")
      for _ in 0..<10 {
        let payload = try identity.notification("consent-revoked", of: "ana")
        let token = try identity.token(.apple, "ana")
        let statuses = try await app.race(6) { index in
          index % 2 == 0 ? try await send(app, payload) : try await app.signIn(.apple, token)
        }
        #expect(statuses == [200: 6])
        let response = try await app.signIn(.apple, token)
        #expect(response.json["user"]["id"].string == ana.id && response.json["isNew"].bool == false)
      }
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
    }
  }

  // MARK: The relay

  @Test func `while the relay is off, no mail goes to its address`() async throws {
    try await TestApp.runWithProviders(["MUSTER_THROTTLING": "off"]) { app, identity in
      let relay = "x1@privaterelay.appleid.com"
      _ = try await signUp(app, identity, "ana", email: relay)
      _ = try await app.signUp("ben")
      try await app.takeMails()
      // The times of the notifications are between the login and now.
      try await app.database.execute("UPDATE identities SET created_at = created_at - interval '1 hour'")
      let mailbox = Mailbox()
      let worker = NotificationWorker(
        app.dependencies, sender: LogSender(logger: app.dependencies.logger), mailer: mailbox, concurrency: 2)
      func mailed() async throws -> [String] {
        for address in [relay, "ben@example.com"] { #expect(try await app.askForCode(address).status == 202) }
        try await worker.runOnce()
        #expect(try await app.value("SELECT count(*) FROM mails") == 0)
        return mailbox.take().sorted()
      }
      func notify(_ type: String, _ seconds: Int, email: String = #""X1@PrivateRelay.AppleID.com""#) async throws {
        try await accept(
          app, try identity.notification(type, of: "ana", at: Self.now - 1800 + seconds, ["email": email]))
      }
      #expect(try await mailed() == ["ben@example.com", relay])
      try await notify("email-disabled", 10)
      #expect(try await mailed() == ["ben@example.com"])
      // Repeated, or delivered late, it changes nothing.
      try await notify("email-enabled", 5)
      #expect(try await mailed() == ["ben@example.com"])
      try await notify("email-enabled", 20)
      try await notify("email-disabled", 10)
      #expect(try await mailed() == ["ben@example.com", relay])
      // Without an address, there is nothing to stop.
      for email in ["", "5", #""\#u{212a}@x.example""#] { try await notify("email-disabled", 30, email: email) }
      #expect(try await mailed() == ["ben@example.com", relay])
    }
  }

  // MARK: Refused and ignored

  @Test func `a notification that Apple has not signed for this app has no effect`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(app, identity, "ana")
      let contents = try await app.contents()
      let valid = try identity.notification("consent-revoked", of: "ana")
      let parts = valid.split(separator: ".").map(String.init)
      func made(_ claims: [String: String], header: String? = nil) throws -> String {
        try identity.notification("consent-revoked", of: "ana", claims: claims, header: header)
      }
      let past = Self.now - 3600
      let refused = [
        ("another key", try identity.notification("consent-revoked", of: "ana", key: "second")),
        (
          "another key under the id of Apple's",
          try identity.notification(
            "consent-revoked", of: "ana", key: "second", header: #"{"alg":"RS256","kid":"first"}"#)
        ),
        ("no signature", "\(parts[0]).\(parts[1])."),
        ("another signature", "\(parts[0]).\(parts[1]).\(String(parts[2].reversed()))"),
        ("no algorithm", try made([:], header: #"{"alg":"none","kid":"first"}"#)),
        ("a symmetric algorithm", try made([:], header: #"{"alg":"HS256","kid":"first"}"#)),
        ("another issuer", try made(["iss": #""https://accounts.google.com""#])),
        ("another app", try made(["aud": #""com.example.other""#])),
        ("also another app", try made(["aud": #"["\#(IdentityServer.clientID)", "com.example.other"]"#])),
        ("no app", try made(["aud": "[]"])),
        ("expired", try made(["exp": "\(past)"])),
        ("issued long ago, without an expiry", try made(["exp": "", "iat": "\(Self.now - 2 * 86_400)"])),
        ("not valid yet", try made(["iat": "\(Self.now + 3600)"])),
        ("no events", try made(["events": ""])), ("events of another type", try made(["events": "{}"])),
        ("malformed events", try made(["events": #""{""#])),
        ("events without a user", try made(["events": #""{\"type\":\"x\"}""#])),
        ("an empty user", try identity.notification("consent-revoked", of: "")),
        ("a long user", try identity.notification("consent-revoked", of: String(repeating: "a", count: 256))),
        ("an identity token", try identity.token(.apple, "ana")),
        ("Google's token", try identity.token(.google, "ana")), ("garbage", "garbage"), ("not ASCII", "é.é.é"),
      ]
      for (what, payload) in refused {
        let response = try await send(app, payload)
        #expect(response.status == 401 && response.problem == "invalid-notification", "\(what): \(response.body)")
      }
      #expect(try await app.contents() == contents)
      #expect(try await ana.send("GET", "users/me").status == 200)
      // Nor does a notification sign anyone in.
      #expect(try await app.signIn(.apple, valid).problem == "invalid-identity-token")
    }
  }

  @Test func `other notifications have no effect`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(app, identity, "ana")
      let contents = try await app.contents()
      let ignored = [
        try identity.notification("new-type", of: "ana"), try identity.notification("consent-revoked", of: "unknown"),
        // Before the identity was linked.
        try identity.notification("consent-revoked", of: "ana", at: Self.now - 600),
        try identity.notification("consent-revoked", of: "ana", at: (Self.now - 600) * 1000),
        try identity.notification("email-disabled", of: "unknown", ["email": #""ana@x.example""#]),
      ]
      for payload in ignored { try await accept(app, payload) }
      #expect(try await app.contents() == contents)
      #expect(try await ana.send("GET", "users/me").status == 200)
      // A time that cannot have been is replaced by that of the token.
      try await accept(app, try identity.notification("consent-revoked", of: "ana", at: Self.now + 86_400))
      #expect(try await sessionsHaveEnded(ana))
    }
  }

  @Test func `without Apple's settings, there is no such endpoint`() async throws {
    try await TestApp.run { app in
      let response = try await send(app, "x")
      #expect(response.status == 404 && response.problem == "provider-not-configured")
    }
  }

  // MARK: Names

  @Test(arguments: ["", " ", "\u{3000} "])
  func `a blank name counts as none`(_ name: String) async throws {
    try await TestApp.runWithProviders { app, identity in
      for provider in [IdentityProvider.Name.apple, .google] {
        let named = ["name": #""Ana Duarte""#]
        let body = ["displayName": name]
        let first = try await app.signIn(provider, try identity.token(provider, "1", named), body)
        #expect(first.status == 200 && first.json["user"]["displayName"].string == "Ana Duarte", "\(first.body)")
        let second = try await app.signIn(provider, try identity.token(provider, "2"), body)
        let user = second.json["user"]
        #expect(second.status == 200 && user["displayName"].string == user["username"].string, "\(second.body)")
        #expect(user["username"].string?.hasPrefix("user") == true)
      }
    }
  }
}
