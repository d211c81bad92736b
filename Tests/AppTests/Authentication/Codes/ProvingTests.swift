import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Proof before power: what a mailed token about an address does, with and without the account's session.
@Suite struct ProvingTests {
  /// Ana has registered, with everything that an intruder would prepare. No mail is left.
  private func register(_ app: TestApp) async throws -> (ana: Phone, token: String, calendar: String) {
    let ana = try await app.signUp("ana", isVerified: false)
    let token = try await app.takeToken("mail-verify-email")
    try await ana.register(token: "phone")
    return (ana, token, try await ana.makeCalendarLink())
  }

  private func change(_ phone: Phone, to email: String, _ app: TestApp) async throws -> String {
    try await phone.editProfile(#"{"email": "\#(email)", "currentPassword": "\#(phone.password)"}"#)
    return try await app.takeToken("mail-verify-email")
  }

  /// Changes a verified address, and returns the token that undoes it.
  private func changed(_ phone: Phone, to email: String, _ app: TestApp) async throws -> String {
    #expect(try await phone.verify(try await change(phone, to: email, app)).status == 204)
    return try await app.takeToken("mail-email-changed")
  }

  private func undo(_ token: String, _ app: TestApp) async throws -> APIResponse {
    try await app.send("POST", "auth/email/undo", body: #"{"token": "\#(token)"}"#)
  }

  private func expectEnded(_ ana: Phone, _ calendar: String, _ app: TestApp) async throws {
    #expect(try await ana.refresh().problem == "session-ended")
    try await eventually { try await ana.send("GET", "users/me").problem == "session-ended" }
    #expect(try await app.logIn("ana", ana.password).problem == "wrong-credentials")
    #expect(try await app.value("SELECT count(*) FROM devices") == 0)
    #expect(try await app.send("GET", calendar).problem == "calendar-not-found")
  }

  // MARK: Verifying

  @Test func `the account's own session verifies the address and keeps everything`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      let other = try await ana.signInAgain()
      #expect(try await other.verify(token).status == 204)
      #expect(try await ana.get("users/me")["emailVerified"].bool == true)
      #expect(try await ana.refresh().status == 200)
      #expect(try await app.logIn("ana", ana.password).status == 200)
      #expect(try await ana.get("devices")["items"].array.count == 1)
      _ = try await app.calendarFeed(calendar)
      #expect(try await app.takeNotifications().isEmpty)
    }
  }

  @Test func `a reader who is not logged in claims the account, and what was prepared ends`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      let ben = try await app.signUp("ben", isVerified: false)
      try await app.befriend(ana, ben)
      let event = try await ana.createEvent("Trap", inviting: [ben])["id"].string ?? ""
      _ = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      _ = try await app.askForReset("ana@example.com")
      let reset = try await app.takeToken("mail-reset-password")
      try await app.takeNotifications()
      #expect(try await app.verify(token).status == 204)
      try await expectEnded(ana, calendar, app)
      #expect(try await app.confirmReset(reset, "another horse ana").badFields == ["token"])
      let told = try await app.takeNotifications()
      #expect(told.map(\.type) == ["account-claimed"] && told[0].recipient == ana.id)
      #expect(["friends", "events", "links"].map { told[0].payload[$0].int } == [1, 1, 1])
      // The owner gets in with a mailed code.
      let code = try await app.takeCode(of: "ana@example.com").code
      let owner = try Phone(app, "ana", try await app.confirmCode(code, of: "ana@example.com"))
      let me = try await owner.get("users/me")
      #expect(me["emailVerified"].bool == true && me["hasPassword"].bool == false)
      #expect(try await owner.get("friends")["items"].array.count == 1)
    }
  }

  @Test func `a link for a new address works only with the account's own session`() async throws {
    try await TestApp.run { app in
      let (ana, first, calendar) = try await register(app)
      let ben = try await app.signUp("ben", isVerified: false)
      try await app.takeMails()
      for isVerified in [false, true] {
        if isVerified {
          #expect(try await ana.verify(try await change(ana, to: "ana@example.com", app)).status == 204)
        }
        let token = try await change(ana, to: "new\(isVerified)@example.com", app)
        let before = try await app.contents()
        let refused = try await app.verify(token)
        #expect(refused.status == 401 && refused.problem == "open-where-logged-in")
        let other = try await ben.verify(token)
        #expect(other.status == 403 && other.problem == "another-account")
        #expect(try await app.verify(first).badFields == ["token"])
        #expect(try await app.contents() == before)
        #expect(try await ana.verify(token).status == 204)
        #expect(try await ana.get("users/me")["email"].string == "new\(isVerified)@example.com")
        try await app.takeMails()
        // Back, for the next round.
        try await app.database.execute(
          """
          UPDATE users SET email = 'ana@example.com', email_verified_at = NULL, is_first_email = true
          WHERE id = \(ana.userID)
          """)
      }
      _ = try await app.calendarFeed(calendar)
    }
  }

  @Test func `an account that is proven otherwise cannot be claimed`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      try await app.database.execute(
        "INSERT INTO identities (provider, subject, user_id) VALUES ('google', '1', \(ana.userID))")
      #expect(try await app.verify(token).problem == "open-where-logged-in")
      try await app.database.execute("DELETE FROM identities")
      // Not the address of the registration.
      try await app.database.execute("UPDATE users SET is_first_email = false")
      #expect(try await app.verify(token).problem == "open-where-logged-in")
      #expect(try await ana.refresh().status == 200)
      _ = try await app.calendarFeed(calendar)
      for bad in ["garbage", ana.refreshToken] {
        let refused = try await app.send(
          "POST", "auth/email/verify", body: #"{"token": "\#(token)"}"#, token: bad)
        #expect(refused.status == 401 && refused.problem == "invalid-token")
      }
      #expect(try await ana.send("POST", "auth/logout").status == 204)
      try await eventually { try await ana.verify(token).problem == "session-ended" }
    }
  }

  @Test func `of a claim and a verification at once, one happens, completely`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      for round in 0..<8 {
        let ana = try await app.signUp("ana\(round)", isVerified: false)
        let token = try await app.takeToken("mail-verify-email")
        async let claimed = app.verify(token)
        async let verified = ana.verify(token)
        let (claim, verification) = (try await claimed, try await verified)
        #expect([claim.status, verification.status].filter { $0 == 204 }.count == 1, "\(claim) \(verification)")
        let isKept = verification.status == 204
        #expect(try await ana.refresh().status == (isKept ? 200 : 401))
        #expect(try await app.logIn(ana.username, ana.password).status == (isKept ? 200 : 401))
      }
    }
  }

  // MARK: Codes and resets

  @Test func `a code or a reset for a mistyped address does not take an account that is proven otherwise`() async throws
  {
    for resets in [false, true] {
      try await TestApp.run { app in
        let (ana, _, calendar) = try await register(app)
        try await app.database.execute(
          "INSERT INTO identities (provider, subject, user_id) VALUES ('google', '1', \(ana.userID))")
        let refused: APIResponse
        if resets {
          _ = try await app.askForReset("ana@example.com")
          let token = try await app.takeToken("mail-reset-password")
          refused = try await app.confirmReset(token, "another horse ana")
        } else {
          refused = try await app.confirmCode(byToken: try await app.takeCode(of: "ana@example.com").token)
        }
        #expect(refused.status == 409 && refused.problem == "email-released", "\(refused.body)")
        let me = try await ana.get("users/me")
        #expect(me["email"] == .null && me["identities"].array.count == 1 && me["hasPassword"].bool == true)
        #expect(try await app.logIn("ana", ana.password).status == 200)
        _ = try await app.calendarFeed(calendar)
        // The address is free for the reader of its mail.
        let registration = #"{"username": "reader", "email": "ana@example.com", "password": "correct horse reader"}"#
        #expect(try await app.send("POST", "auth/register", body: registration).status == 201)
      }
    }
  }

  // MARK: Undoing

  @Test func `the old address undoes a change within seven days, once, and ends what the thief has`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      #expect(try await ana.verify(token).status == 204)
      let undoing = try await changed(ana, to: "thief@example.com", app)
      try await app.database.execute(
        "INSERT INTO identities (provider, subject, user_id) VALUES ('google', 'thief', \(ana.userID))")
      // The thief changes it again. The first undo stays valid, and the second one is the thief's.
      let thiefs = try await changed(ana, to: "thief2@example.com", app)
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at - interval '6 days'")
      #expect(try await undo(undoing, app).status == 204)
      try await expectEnded(ana, calendar, app)
      #expect(try await app.value("SELECT count(*) FROM identities") == 0)
      #expect(
        try await app.takeMails().map { "\($0.type) \($0.to) \($0.token ?? "-")" } == [
          "mail-email-changed thief2@example.com -"
        ])
      for spent in [undoing, thiefs] { #expect(try await undo(spent, app).badFields == ["token"]) }
      let code = try await app.takeCode(of: "ana@example.com")
      let owner = try Phone(app, "ana", try await app.confirmCode(byToken: code.token))
      let me = try await owner.get("users/me")
      #expect(me["email"].string == "ana@example.com" && me["emailVerified"].bool == true)
    }
  }

  @Test func `an undo expires, and an address that was never verified has none`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      try await app.takeMails()
      #expect(try await ana.verify(try await change(ana, to: "new@example.com", app)).status == 204)
      let told = try await app.takeMails()
      #expect(told.map(\.to) == ["ana@example.com"] && told[0].token == nil)
      let undoing = try await changed(ana, to: "newer@example.com", app)
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at - interval '7 days'")
      #expect(try await undo(undoing, app).badFields == ["token"])
      #expect(try await ana.get("users/me")["email"].string == "newer@example.com")
    }
  }

  @Test func `an undo takes the address from an account that has not verified it, and from no other`() async throws {
    try await TestApp.run { app in
      let (ana, token, _) = try await register(app)
      #expect(try await ana.verify(token).status == 204)
      let undoing = try await changed(ana, to: "thief@example.com", app)
      let body = #"{"username": "squatter", "email": "ANA@example.com", "password": "correct horse squatter"}"#
      let squatter = try Phone(app, "squatter", try await app.send("POST", "auth/register", body: body))
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(squatter.userID)")
      let before = try await app.contents()
      #expect(try await undo(undoing, app).problem == "email-taken")
      #expect(try await app.contents() == before)
      try await app.database.execute("UPDATE users SET email_verified_at = NULL WHERE id = \(squatter.userID)")
      #expect(try await undo(undoing, app).status == 204)
      #expect(try await squatter.get("users/me")["email"] == .null)
      try await app.takeMails()
      #expect(try await app.takeCode(of: "ana@example.com").code.count == 6)
    }
  }

  @Test func `of many clicks on one undo, one counts`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, token, _) = try await register(app)
      #expect(try await ana.verify(token).status == 204)
      let undoing = try await changed(ana, to: "thief@example.com", app)
      #expect(try await app.race(8) { _ in try await undo(undoing, app) } == [204: 1, 422: 7])
    }
  }

  @Test func `of an undo and another account's taking of the address, one happens, and the other is refused`()
    async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      for round in 0..<12 {
        let (name, address) = ("ana\(round)", "ana\(round)@example.com")
        let ana = try await app.signUp(name, isVerified: false)
        #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
        let undoing = try await changed(ana, to: "thief\(round)@example.com", app)
        let other = try await app.signUp("other\(round)")
        try await app.takeMails()
        let taking = try await change(other, to: "\(name)@example.com", app)
        let statuses = try await app.race(3) { number in
          switch number {
          case 0: try await undo(undoing, app)
          case 1: try await other.verify(taking)
          default:
            try await app.send(
              "POST", "auth/register",
              body: #"{"username": "late\#(round)", "email": "\#(name)@example.com", "password": "correct horse late"}"#
            )
          }
        }
        #expect(Set(statuses.keys).isSubset(of: [201, 204, 409]), "\(statuses)")
        #expect(
          try await app.value("SELECT count(*) FROM users WHERE email = \(address)") == 1)
        try await app.takeMails()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `of two concurrent undos to one address, one happens, and the other is refused`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      for round in 0..<8 {
        let address = "shared\(round)@example.com"
        var undos: [String] = []
        // Both have had the address, one after the other.
        for name in ["ana\(round)", "ben\(round)"] {
          let phone = try await app.signUp(name)
          try await app.takeMails()
          #expect(try await phone.verify(try await change(phone, to: address, app)).status == 204)
          try await app.takeMails()
          undos.append(try await changed(phone, to: "new-\(name)@example.com", app))
        }
        let tokens = undos
        let statuses = try await app.race(2) { number in try await undo(tokens[number], app) }
        #expect(statuses == [204: 1, 409: 1], "\(statuses)")
        #expect(try await app.value("SELECT count(*) FROM users WHERE email = \(address)") == 1)
        try await app.takeMails()
      }
      try await app.takeNotifications()
    }
  }

  // MARK: Pages

  @Test func `the page says what a click ends, and only the click ends it`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      let ben = try await app.signUp("ben", isVerified: false)
      try await app.befriend(ana, ben)
      try await ana.createEvent("<b>Trap</b>")
      try await app.takeNotifications()
      let before = try await app.contents()
      let page = try await app.send("GET", "/verify/\(token)")
      #expect(page.status == 200 && page.header("Cache-Control") == "no-store")
      for word in ["ana@example.com", "“ana”", "password no longer works", "logged out (1)", "(1)", "calendar"] {
        #expect(page.body.contains(word), "\(word)")
      }
      // Neither a preview nor a form without the button's word changes anything.
      #expect(try await app.send("HEAD", "/verify/\(token)").status == 200)
      #expect(try await app.submit("/verify/\(token)", [:]).status == 422)
      #expect(try await app.send("GET", "/undo/\(token)").status == 404)
      #expect(try await app.contents() == before)
      let done = try await app.submit("/verify/\(token)", ["do": "confirm"])
      #expect(done.status == 200 && done.body.contains("Friend: Ben"))
      #expect(done.body.contains("Event: &lt;b&gt;Trap") && !done.body.contains("<b>Trap"))
      try await expectEnded(ana, calendar, app)
      #expect(try await app.submit("/verify/\(token)", ["do": "confirm"]).status == 404)
      try await app.takeNotifications()
    }
  }

  @Test func `the page of a link for a new address has no button, and an undo has one`() async throws {
    try await TestApp.run { app in
      let (ana, token, calendar) = try await register(app)
      #expect(try await ana.verify(token).status == 204)
      let next = try await change(ana, to: "thief@example.com", app)
      let before = try await app.contents()
      let page = try await app.send("GET", "/verify/\(next)")
      #expect(page.status == 200 && page.body.contains("where you are logged in") && !page.body.contains("<form"))
      let refused = try await app.submit("/verify/\(next)", ["do": "confirm"])
      #expect(refused.status == 401 && refused.body.contains("Nothing has changed"))
      #expect(try await app.contents() == before)
      #expect(try await ana.verify(next).status == 204)
      let undoing = try await app.takeToken("mail-email-changed")
      let asking = try await app.send("GET", "/undo/\(undoing)")
      #expect(asking.status == 200 && asking.body.contains("password no longer works"))
      #expect(try await app.submit("/undo/\(undoing)", ["do": "confirm"]).status == 200)
      try await expectEnded(ana, calendar, app)
      for gone in ["/undo/\(undoing)", "/verify/\(next)", "/verify/x", "/undo/\(String(repeating: "a", count: 3000))"] {
        #expect(try await app.send("GET", gone).status == 404)
      }
    }
  }

  @Test func `the mail says which of the two kinds its token is, and where its page is`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      func proves() async throws -> String? {
        let kind: String? = try await app.value("SELECT payload->>'proves' FROM mails WHERE type = 'mail-verify-email'")
        try await app.takeMails()
        return kind
      }
      #expect(try await proves() == "registration")
      _ = try await ana.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(ana.password)"}"#)
      #expect(try await proves() == "change")
      _ = try await ana.editProfile(#"{"email": "ana@example.com", "currentPassword": "\#(ana.password)"}"#)
      #expect(try await proves() == "registration")
      try await app.database.execute(
        "INSERT INTO identities (provider, subject, user_id) VALUES ('google', '1', \(ana.userID))")
      _ = try await ana.editProfile(#"{"email": "ana@example.com", "currentPassword": "\#(ana.password)"}"#)
      #expect(try await proves() == "change")
    }
  }
}
