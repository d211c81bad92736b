import Foundation
import Postgres
import Testing

@testable import App

/// A mailed code in place of the password, for changes that need fresh evidence.
@Suite struct CodeReauthenticationTests {
  private let email = "ana@example.com"

  /// Registers a user without a password, who then logs in with a code.
  private func signUp(in app: TestApp) async throws -> Phone {
    let registered = try await app.send(
      "POST", "auth/register", body: #"{"username": "ana", "email": "ana@example.com"}"#)
    #expect(registered.status == 201, "\(registered.body)")
    try await app.takeMails()
    let code = try await app.takeCode(of: email).code
    return try Phone(app, "ana", try await app.confirmCode(code, of: email))
  }

  /// Sends a body with `{code}` in it: first with a wrong code, then with the right one, then with that one again.
  private func expectProof(
    _ phone: Phone, _ method: String, _ path: String, _ body: String, _ status: Int, again: (Int, String),
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let code = try await phone.app.takeCode(of: email).code
    func send(_ code: String) async throws -> APIResponse {
      try await phone.send(method, path, body.replacing("{code}", with: code))
    }
    let wrong = try await send(code.wrongCode(1))
    #expect(wrong.status == 403 && wrong.problem == "wrong-code", "\(wrong.body)", sourceLocation: sourceLocation)
    let right = try await send(code)
    #expect(right.status == status, "\(right.body)", sourceLocation: sourceLocation)
    let repeated = try await send(code)
    #expect(repeated.status == again.0 && repeated.problem == again.1, sourceLocation: sourceLocation)
  }

  @Test func `a code permits a new password, which an account without one then has`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      let other = try Phone(app, "ana", try await app.confirmCode(byToken: app.takeCode(of: email).token))
      try await expectProof(
        ana, "POST", "auth/password", #"{"code": "{code}", "newPassword": "correct horse ana"}"#, 204,
        again: (403, "wrong-code"))
      #expect(try await app.takeMails().map(\.type) == ["mail-password-changed"])
      #expect(try await other.refresh().problem == "session-ended")
      #expect(try await app.logIn("ana", ana.password).status == 200)
      // It also replaces a password that the user has forgotten.
      try await expectProof(
        ana, "POST", "auth/password", #"{"code": "{code}", "newPassword": "another horse ana"}"#, 204,
        again: (403, "wrong-code"))
      #expect(try await app.logIn("ana", "another horse ana").status == 200)
    }
  }

  @Test func `a code permits another address`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      try await expectProof(
        ana, "PATCH", "users/me", #"{"email": "new@example.com", "code": "{code}"}"#, 200, again: (403, "wrong-code"))
      #expect(try await ana.get("users/me")["pendingEmail"].string == "new@example.com")
    }
  }

  @Test func `a code permits deleting the account`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      try await expectProof(
        ana, "DELETE", "users/me", #"{"code": "{code}"}"#, 204, again: (401, "session-ended"))
      #expect(try await app.value("SELECT count(*) FROM users") == 0)
    }
  }

  @Test func `a code permits linking and unlinking, and a verified address is a way in`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await signUp(in: app)
      let token = try identity.token(.google, "1")
      try await expectProof(
        ana, "POST", "auth/google/link", #"{"idToken": "\#(token)", "code": "{code}"}"#, 204,
        again: (403, "wrong-code"))
      #expect(try await ana.get("users/me")["identities"] == .array([.string("google")]))
      // There is no password and no other identity.
      try await expectProof(
        ana, "DELETE", "auth/google", #"{"code": "{code}"}"#, 204, again: (403, "wrong-code"))
      let me = try await ana.get("users/me")
      #expect(me["identities"] == .array([]) && me["hasPassword"].bool == false)
      let response = try await app.confirmCode(byToken: app.takeCode(of: email).token)
      #expect(response.json["user"]["id"].string == ana.id)
    }
  }

  @Test func `an address that is not verified is not a way to log in`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana", isVerified: false)
      let token = try identity.token(.google, "1")
      #expect(try await ana.link(.google, token).status == 204)
      try await app.database.execute("UPDATE users SET password_hash = NULL")
      let refused = try await ana.send("DELETE", "auth/google", #"{"currentIdToken": "\#(token)"}"#)
      #expect(refused.status == 409 && refused.problem == "last-way-in", "\(refused.body)")
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      #expect(try await ana.send("DELETE", "auth/google", #"{"currentIdToken": "\#(token)"}"#).status == 204)
    }
  }

  @Test func `a code to an address that is not verified does not count as evidence`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let code = try await app.takeCode(of: email).code
      for (method, path, body) in [
        ("DELETE", "users/me", #"{"code": "\#(code)"}"#),
        ("PATCH", "users/me", #"{"email": "new@example.com", "code": "\#(code)"}"#),
        ("POST", "auth/password", #"{"code": "\#(code)", "newPassword": "another horse ana"}"#),
        ("DELETE", "auth/google", #"{"code": "\#(code.wrongCode(1))"}"#),
      ] {
        let refused = try await ana.send(method, path, body)
        #expect(refused.status == 409 && refused.problem == "email-unverified", "\(method) \(path): \(refused.body)")
      }
      #expect(try await app.value("SELECT count(*) FROM code_uses WHERE kind = 'wrong'") == 0)
      #expect(try await app.confirmCode(code, of: email).status == 200)
    }
  }

  @Test func `a change that fails does not use up its code`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      _ = try await app.signUp("ben")
      let code = try await app.takeCode(of: email).code
      let taken = try await ana.send("PATCH", "users/me", #"{"email": "ben@example.com", "code": "\#(code)"}"#)
      #expect(taken.problem == "email-taken")
      let weak = try await ana.send("POST", "auth/password", #"{"code": "\#(code)", "newPassword": "iloveyou"}"#)
      #expect(weak.badFields == ["newPassword"])
      let changed = try await ana.send("PATCH", "users/me", #"{"email": "new@example.com", "code": "\#(code)"}"#)
      #expect(changed.status == 200, "\(changed.body)")
    }
  }

  @Test func `another user's code does not count as evidence`() async throws {
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      let ben = try await app.signUp("ben")
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      let (anas, bens) = (try await app.takeCode(of: email).code, try await app.takeCode(of: "ben@example.com").code)
      if anas != bens {
        #expect(try await ben.send("DELETE", "users/me", #"{"code": "\#(anas)"}"#).problem == "wrong-code")
      }
      #expect(try await ana.send("DELETE", "users/me", #"{"code": "\#(anas)"}"#).status == 204)
    }
  }

  @Test func `wrong codes count together with those of logins, and are slowed down like wrong passwords`() async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await signUp(in: app)
      let (code, token) = try await app.takeCode(of: email)
      for number in 1...6 {
        #expect(try await ana.send("DELETE", "users/me", #"{"code": "\#(code.wrongCode(number))"}"#).status == 403)
      }
      for number in 1...4 { #expect(try await app.confirmCode(code.wrongCode(number), of: email).status == 401) }
      #expect(try await ana.send("DELETE", "users/me", #"{"code": "\#(code)"}"#).problem == "wrong-code")
      #expect(try await app.confirmCode(code, of: email).problem == "invalid-code")
      #expect(try await app.confirmCode(byToken: token).status == 200)
    }
    try await TestApp.run { app in
      let ana = try await signUp(in: app)
      let code = try await app.takeCode(of: email).code
      var statuses: [Int] = []
      for number in 1...9 {
        let wrong = #"{"code": "\#(code.wrongCode(number))"}"#
        statuses.append(try await ana.send("DELETE", "users/me", wrong).status)
      }
      #expect(statuses.prefix(6) == [403, 403, 403, 403, 403, 403] && statuses.contains(429), "\(statuses)")
    }
  }
}
