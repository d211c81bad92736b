import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Logging in with a mailed code. Every user's address is their name at example.com.
@Suite struct CodeTests {
  private let email = "ana@example.com"

  /// Signs up a user whose address is verified.
  private func signUp(_ name: String = "ana", in app: TestApp) async throws -> Phone {
    let phone = try await app.signUp(name)
    #expect(try await phone.verify(try await app.takeToken("mail-verify-email")).status == 204)
    return phone
  }

  // MARK: Logging in

  @Test func `a code logs in once, and ends nothing if the address was verified before`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      let code = try await app.takeCode(of: "Ana@Example.com").code
      let response = try await app.send(
        "POST", "auth/code/confirm", body: #"{"email": "ANA@example.com", "code": "\#(code)", "device": "iPhone"}"#)
      #expect(response.status == 200, "\(response.body)")
      #expect(response.header("Cache-Control") == "no-store")
      let again = try Phone(app, "ana", response)
      #expect(again.id == ana.id)
      let devices = try await again.get("auth/sessions")["items"].array.map { $0["device"].string }
      #expect(devices == ["iPhone", nil])
      #expect(try await again.refresh().status == 200)
      #expect(try await ana.refresh().status == 200)
      #expect(try await app.logIn("ana", ana.password).status == 200)
      #expect(try await app.takeMails().isEmpty)
      let repeated = try await app.confirmCode(code, of: email)
      #expect(repeated.status == 401 && repeated.problem == "invalid-code")
    }
  }

  @Test func `the mail's token logs in as well, and a mail is good for one login`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      let first = try await app.takeCode(of: email)
      let response = try await app.confirmCode(byToken: first.token)
      #expect(response.status == 200 && response.json["user"]["id"].string == ana.id, "\(response.body)")
      #expect(try await app.confirmCode(byToken: first.token).problem == "invalid-code")
      #expect(try await app.confirmCode(first.code, of: email).problem == "invalid-code")
      let second = try await app.takeCode(of: email)
      #expect(try await app.confirmCode(second.code, of: email).status == 200)
      #expect(try await app.confirmCode(byToken: second.token).problem == "invalid-code")
    }
  }

  @Test func `only the newest code logs in, only before it expires, and only to its own account`() async throws {
    try await TestApp.run { app in
      _ = try await signUp("ben", in: app)
      _ = try await signUp(in: app)
      let old = try await app.takeCode(of: email)
      let new = try await app.takeCode(of: email)
      if old.code != new.code { #expect(try await app.confirmCode(old.code, of: email).status == 401) }
      #expect(try await app.confirmCode(byToken: old.token).status == 401)
      #expect(try await app.confirmCode(new.code, of: "ben@example.com").status == 401)
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at - interval '10 minutes'")
      #expect(try await app.confirmCode(new.code, of: email).status == 401)
      #expect(try await app.confirmCode(byToken: new.token).status == 401)
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at + interval '10 minutes'")
      #expect(try await app.confirmCode(new.code, of: email).status == 200)
    }
  }

  @Test func `logins with codes wait for their turn before they take a connection`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await signUp(in: app)
      let token = try await app.takeCode(of: email).token
      let queue = app.dependencies.writeQueue
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      let logins = try await elsewhere.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
        let logins = (0..<6).map { _ in Task { try await app.confirmCode(byToken: token).status } }
        try await eventually { queue.waiting(at: .actor(ana.userID)) == logins.count - 1 }
        return logins
      }
      var statuses: [Int] = []
      for login in logins { statuses.append(try await login.value) }
      #expect(statuses.sorted() == [200, 401, 401, 401, 401, 401])
      #expect(queue.isIdle)
    }
  }

  @Test func `a new address or a new password voids a code that was mailed before`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      _ = try await ana.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(ana.password)"}"#)
      let link = try await app.takeToken("mail-verify-email")
      // It goes to the account's address, not to the pending one.
      #expect(try await app.askForCode("new@example.com").status == 202)
      #expect(try await app.takeMails().isEmpty)
      let first = try await app.takeCode(of: email)
      #expect(try await ana.verify(link).status == 204)
      #expect(try await app.confirmCode(byToken: first.token).status == 401)
      for address in [email, "new@example.com"] {
        #expect(try await app.confirmCode(first.code, of: address).status == 401)
      }
      let second = try await app.takeCode(of: "new@example.com")
      let change = #"{"currentPassword": "\#(ana.password)", "newPassword": "another horse ana"}"#
      #expect(try await ana.send("POST", "auth/password", change).status == 204)
      #expect(try await app.confirmCode(byToken: second.token).status == 401)
      #expect(try await app.confirmCode(second.code, of: "new@example.com").status == 401)
    }
  }

  // MARK: Proving the address

  @Test func `the first login with a code verifies the address, and the profile's stamp moves`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let stamps = try await ana.refreshLists()
      let code = try await app.takeCode(of: email).code
      let again = try Phone(app, "ana", try await app.confirmCode(code, of: email))
      #expect(try await again.stale(stamps) == [.profile])
      let me = try await again.get("users/me")
      #expect(me["emailVerified"].bool == true && me["hasPassword"].bool == false)
    }
  }

  @Test func `an attacker who registered another person's address loses every way in when that person logs in`()
    async throws
  {
    try await TestApp.run { app in
      // The attacker has a password, two sessions, a device, a link to the calendar, and has asked for another address.
      let attacker = try await app.signUp("ana", isVerified: false)
      let calendar = try await attacker.makeCalendarLink()
      let other = try await attacker.signInAgain()
      try await app.takeMails()
      try await attacker.register(token: "attacker")
      _ = try await attacker.editProfile(
        #"{"email": "attacker@example.com", "currentPassword": "\#(attacker.password)"}"#)
      let link = try await app.takeToken("mail-verify-email")
      _ = try await app.askForReset(email)
      let reset = try await app.takeToken("mail-reset-password")

      let code = try await app.takeCode(of: email).code
      let owner = try Phone(app, "ana", try await app.confirmCode(code, of: email))
      #expect(owner.id == attacker.id)
      for phone in [attacker, other] {
        #expect(try await phone.refresh().problem == "session-ended")
        try await eventually { try await phone.send("GET", "users/me").problem == "session-ended" }
      }
      #expect(try await app.logIn("ana", attacker.password).problem == "wrong-credentials")
      #expect(try await app.send("GET", calendar).problem == "calendar-not-found")
      #expect(try await app.verify(link).badFields == ["token"])
      #expect(try await app.confirmReset(reset, "another horse ana").badFields == ["token"])
      #expect(try await app.value("SELECT count(*) FROM devices") == 0)

      let me = try await owner.get("users/me")
      #expect(me["email"].string == email && me["emailVerified"].bool == true)
      #expect(me["hasPassword"].bool == false && me["identities"] == .array([]) && me["pendingEmail"] == .null)
      #expect(try await owner.get("auth/sessions")["items"].array.count == 1)
    }
  }

  // MARK: Codes

  @Test func `a code has six digits, is bound to its mail and key, and outlives a key rotation`() throws {
    let (old, new) = (SigningKeys.generate(), SigningKeys.generate())
    let keys = try SigningKeys(old)
    let kid = keys.signing.kid
    let foreign = try SigningKeys("\(kid):\(new.split(separator: ":")[1])")
    var (codes, same): (Set<String>, Int) = ([], 0)
    for _ in 0..<2000 {
      let id = MailToken.ID.new()
      let code = try #require(SignInCode.text(of: id, kid: kid, keys: keys))
      #expect(code.wholeMatch(of: /[0-9]{6}/) != nil)
      #expect(SignInCode.text(of: id, kid: kid, keys: try SigningKeys("\(new),\(old)")) == code)
      #expect(SignInCode.text(of: id, kid: kid, keys: try SigningKeys(new)) == nil)
      if SignInCode.text(of: id, kid: kid, keys: foreign) == code { same += 1 }
      codes.insert(code)
    }
    // All first digits occur, zero included.
    #expect(Set(codes.compactMap(\.first)).count == 10)
    #expect(codes.count > 1900 && same < 5)
  }

  @Test func `a token works only for its purpose`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let verifying = try await app.takeToken("mail-verify-email")
      _ = try await app.askForReset(email)
      let resetting = try await app.takeToken("mail-reset-password")
      let mailed = try await app.takeCode(of: email).token
      for bad in [verifying, resetting, mailed + "A", String(mailed.dropLast(3)), "mm1...", ana.refreshToken] {
        #expect(try await app.confirmCode(byToken: bad).problem == "invalid-code", "\(bad)")
      }
      #expect(try await app.verify(mailed).badFields == ["token"])
      #expect(try await app.confirmReset(mailed, "another horse ana").badFields == ["token"])
      #expect(try await app.confirmCode(byToken: mailed).status == 200)
    }
  }

  // MARK: Registering

  @Test func `an account without a password logs in with codes`() async throws {
    try await TestApp.run { app in
      let registered = try await app.send(
        "POST", "auth/register", body: #"{"username": "ana", "email": "ana@example.com", "password": null}"#)
      #expect(registered.status == 201, "\(registered.body)")
      #expect(registered.json["user"]["hasPassword"].bool == false)
      #expect(try await app.takeMails().map(\.type) == ["mail-verify-email"])
      for password in ["", "null", "correct horse ana"] {
        #expect(try await app.logIn("ana", password).problem == "wrong-credentials")
      }
      let code = try await app.takeCode(of: email).code
      let response = try await app.confirmCode(code, of: email)
      #expect(response.json["user"]["id"] == registered.json["user"]["id"], "\(response.body)")
      #expect(response.json["user"]["emailVerified"].bool == true)
    }
  }
}
