import Foundation
import Postgres
import Testing

@testable import App

extension Phone {
  fileprivate func changePassword(from current: String, to new: String) async throws -> APIResponse {
    try await send("POST", "auth/password", #"{"currentPassword": "\#(current)", "newPassword": "\#(new)"}"#)
  }
}

/// Every user's password is "correct horse" and their name.
@Suite struct PasswordTests {
  // MARK: Changing the password

  @Test func `a new password replaces the old one, ends the other sessions, and sends a mail`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let other = try await ana.signInAgain()
      try await app.takeMails()
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      let response = try await ana.changePassword(from: "correct horse ana", to: "another horse ana")
      #expect(response.status == 204, "\(response.body)")
      #expect(response.header("Cache-Control") == "no-store")
      #expect(try await app.logIn("ana", "correct horse ana").status == 401)
      #expect(try await app.logIn("ana", "another horse ana").status == 200)
      #expect(try await ana.refresh().status == 200)
      #expect(try await other.refresh().problem == "session-ended")
      let mails = try await app.takeMails()
      #expect(mails.map(\.type) == ["mail-password-changed"])
      #expect(mails.first?.to == "ana@example.com" && mails.first?.token == nil)
    }
  }

  @Test func `a password change needs the current password, and wrong guesses are throttled`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      var responses: [APIResponse] = []
      repeat {
        responses.append(try await ana.changePassword(from: "wrong horse \(responses.count)", to: "another horse ana"))
      } while responses.last?.status == 403 && responses.count < 20
      #expect(responses.first?.problem == "wrong-password")
      #expect(responses.last?.status == 429)
      #expect(responses.last?.header("Retry-After") != nil)
      // The session continues, and nothing has changed.
      _ = try await ana.get("users/me")
      #expect(try await ana.refresh().status == 200)
      #expect(try await app.takeMails().isEmpty)
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
    }
  }

  @Test func `of two concurrent changes, one succeeds`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let statuses = try await app.race(2) {
        try await ana.changePassword(from: "correct horse ana", to: "another horse \($0)")
      }
      #expect(statuses == [204: 1, 403: 1])
    }
  }

  @Test func `a reset gives a password to an account without one`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE users SET password_hash = NULL")
      #expect(try await ana.changePassword(from: "correct horse ana", to: "another horse").problem == "no-password")
      _ = try await app.askForReset("ana@example.com")
      let token = try await app.takeToken("mail-reset-password")
      #expect(try await app.confirmReset(token, "another horse").status == 204)
      #expect(try await app.logIn("ana", "another horse").status == 200)
    }
  }

  // MARK: Choosing a password

  @Test func `the most common passwords and the account's own names are refused, in any spelling`() async throws {
    try await TestApp.run { app in
      let username = "ana.duarte"
      for password in [
        "password", "Password1", "ILOVEYOU", "12345678", "qwertyuiop", "ｐａｓｓｗｏｒｄ", username, "ANA.DUARTE",
        "duarte-ana@example.com", "duarte-ana", "Duarte-Ana", "ｄｕａｒｔｅ－ａｎａ",
      ] {
        let response = try await app.send(
          "POST", "auth/register",
          body: #"{"username": "\#(username)", "email": "duarte-ana@example.com", "password": "\#(password)"}"#)
        #expect(response.status == 422 && response.badFields == ["password"], "\(password): \(response.body)")
      }
      let ana = try await app.signUp("ana")
      _ = try await app.askForReset("ana@example.com")
      let token = try await app.takeToken("mail-reset-password")
      for password in ["iloveyou", "ana@example.com", "short"] {
        let changed = try await ana.changePassword(from: "correct horse ana", to: password)
        #expect(changed.badFields == ["newPassword"], "\(password): \(changed.body)")
        let reset = try await app.confirmReset(token, password)
        #expect(reset.badFields == ["newPassword"], "\(password): \(reset.body)")
      }
      // The token is still valid.
      #expect(try await app.confirmReset(token, "another horse ana").status == 204)
    }
  }

  @Test func `five thousand common passwords are refused`() {
    let listed = Resources.commonPasswords.split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(listed.count == 5000)
    for password in listed {
      #expect(
        password.count >= 8
          && Passwords.objection(to: String(password), of: Passwords.Owner(username: "", displayName: nil, email: nil))
            != nil
      )
    }
    for password in ["correct horse", "plans-with-friends", "password of my own", ""] {
      #expect(
        Passwords.objection(
          to: password, of: Passwords.Owner(username: "ana", displayName: "Ana", email: "ana@example.com")) == nil,
        "\(password)")
    }
  }

  // MARK: Resetting the password

  @Test func `a reset sets the password, ends all sessions, and verifies the address`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await app.askForReset("ANA@example.com").status == 202)
      let mails = try await app.takeMails()
      #expect(mails.map(\.type) == ["mail-verify-email", "mail-reset-password"])
      #expect(mails.allSatisfy { $0.to == "ana@example.com" })
      let token = try #require(mails.last?.token)
      let response = try await app.confirmReset(token, "another horse ana")
      #expect(response.status == 204, "\(response.body)")
      #expect(response.header("Cache-Control") == "no-store")
      #expect(try await ana.refresh().problem == "session-ended")
      #expect(try await app.logIn("ana", "correct horse ana").status == 401)
      let again = try Phone(app, "ana", try await app.logIn("ana", "another horse ana"))
      let profile = try await again.get("users/me")
      #expect(profile["emailVerified"].bool == true)
      // The other mailed token is also void.
      let void = try await app.verify(try #require(mails.first?.token))
      #expect(void.badFields == ["token"])
      #expect(try await app.takeMails().map(\.type) == ["mail-password-changed"])
    }
  }

  @Test func `a mailbox is not flooded with resets, and the caller does not learn of the limit`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await app.takeMails()
      for address in ["ana@example.com", "unknown@example.com"] {
        for _ in 0..<9 {
          let response = try await app.askForReset(address)
          #expect(response.status == 202, "\(response.body)")
        }
      }
      let mails = try await app.takeMails()
      #expect((1..<9).contains(mails.count))
      // Nor can one client flood many mailboxes.
      let statuses = try await app.race(60) { try await app.askForReset("unknown\($0)@example.com") }
      #expect(Set(statuses.keys) == [202, 429])
    }
  }

  @Test func `only the newest token resets the password, once, and only before it expires`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      var tokens: [String] = []
      for _ in 1...3 {
        _ = try await app.askForReset("ana@example.com")
        tokens.append(try await app.takeToken("mail-reset-password"))
      }
      for old in tokens.dropLast() {
        #expect(try await app.confirmReset(old, "another horse ana").badFields == ["token"])
      }
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at - interval '30 minutes'")
      #expect(try await app.confirmReset(tokens[2], "another horse ana").badFields == ["token"])
      try await app.database.execute("UPDATE mail_tokens SET expires_at = expires_at + interval '30 minutes'")
      #expect(try await app.confirmReset(tokens[2], "another horse ana").status == 204)
      let repeated = try await app.confirmReset(tokens[2], "another horse ana")
      #expect(repeated.status == 422 && repeated.badFields == ["token"])
    }
  }

  @Test func `a new password voids an earlier reset token`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.askForReset("ana@example.com")
      let token = try await app.takeToken("mail-reset-password")
      #expect(try await ana.changePassword(from: "correct horse ana", to: "another horse ana").status == 204)
      #expect(try await app.confirmReset(token, "a third horse ana").badFields == ["token"])
    }
  }

  @Test func `a password reset removes all linked identities, and revokes Apple's grant`() async throws {
    try await TestApp.run { app in
      let grant = try AppleGrant("refresh", clientID: "com.example.app", keys: app.dependencies.refreshTokenKeys)
      for name in ["ana", "ben"] {
        let phone = try await app.signUp(name)
        let token = try await app.takeToken("mail-verify-email")
        #expect(try await phone.verify(token).status == 204)
        try await app.database.execute(
          """
          INSERT INTO identities (provider, subject, user_id, sealed_grant)
          VALUES ('google', \(name), \(phone.userID), NULL), ('apple', \(name), \(phone.userID), \(grant.sealed))
          """)
        _ = try await app.askForReset("\(name)@example.com")
        let reset = try await app.takeToken("mail-reset-password")
        #expect(try await app.confirmReset(reset, "another horse \(name)").status == 204)
        #expect(try await app.value("SELECT count(*) FROM identities") == 0)
        let revocations = try await app.database.execute("DELETE FROM apple_revocations")
        #expect(revocations.affected == 1)
      }
    }
  }

  // MARK: Verifying an address

  @Test func `an address is verified once, and the profile shows it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let token = try await app.takeToken("mail-verify-email")
      let before = try await ana.get("users/me")
      #expect(before["emailVerified"].bool == false)
      let stale = try await ana.stale {
        let response = try await ana.verify(token)
        #expect(response.status == 204)
      }
      #expect(stale == [.profile])
      let after = try await ana.get("users/me")
      #expect(after["emailVerified"].bool == true)
      let repeated = try await ana.verify(token)
      #expect(repeated.status == 422 && repeated.badFields == ["token"])
      #expect(try await app.takeMails().isEmpty)
    }
  }

  // MARK: Tokens

  @Test func `a token works only for its purpose, and cannot be forged`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let verifying = try await app.takeToken("mail-verify-email")
      _ = try await app.askForReset("ana@example.com")
      let resetting = try await app.takeToken("mail-reset-password")
      let (mine, other) = (verifying.split(separator: "."), resetting.split(separator: "."))
      let keys = app.dependencies.refreshTokenKeys
      let foreign = try SigningKeys("\(keys.signing.kid):\(SigningKeys.generate().split(separator: ":")[1])")
      let id = try #require(try await app.value("SELECT id FROM mail_tokens", as: MailToken.ID.self))
      let forged = try #require(MailToken.text(of: id, for: .verifyEmail, kid: keys.signing.kid, keys: foreign))
      for bad in [
        resetting, "\(mine[0]).\(mine[1]).\(other[2]).\(mine[3])", "\(mine[0]).\(mine[1]).\(mine[2]).", "mm1...",
        "x", ana.refreshToken, ana.accessToken, verifying + "A", String(verifying.dropLast(3)), forged,
      ] {
        let response = try await app.verify(bad)
        #expect(response.status == 422 && response.badFields == ["token"], "\(bad): \(response.body)")
      }
      #expect(try await app.confirmReset(verifying, "another horse ana").badFields == ["token"])
      let refresh = try await app.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(verifying)"}"#)
      #expect(refresh.status == 401)
      // None of these attempts has spent a token.
      #expect(try await ana.verify(verifying).status == 204)
      #expect(try await app.confirmReset(resetting, "another horse ana").status == 204)
    }
  }

  @Test func `a mailed token outlives a key rotation`() async throws {
    let (old, new) = (SigningKeys.generate(), SigningKeys.generate())
    let (id, kid) = (MailToken.ID.new(), try SigningKeys(old).signing.kid)
    let before = MailToken.text(of: id, for: .resetPassword, kid: kid, keys: try SigningKeys(old))
    let after = MailToken.text(of: id, for: .resetPassword, kid: kid, keys: try SigningKeys("\(new),\(old)"))
    #expect(before != nil && before == after)
    #expect(MailToken.text(of: id, for: .resetPassword, kid: kid, keys: try SigningKeys(new)) == nil)
  }
}
