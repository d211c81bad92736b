import Postgres
import Testing

@testable import App

/// Accounts that only their open session lets into: registered without a password, and without a verified address.
@Suite struct AdoptionTests {
  private let email = "ana@example.com"

  private func register(_ app: TestApp, email: String) async throws -> Phone {
    let registered = try await app.send(
      "POST", "auth/register", body: #"{"username": "ana", "email": "\#(email)"}"#)
    #expect(registered.status == 201, "\(registered.body)")
    try await app.takeMails()
    return try Phone(app, "ana", registered)
  }

  @Test func `a sign-in with a provider adopts the account with its address, and ends its sessions`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await register(app, email: email)
      let stamp = try #require(try await ana.get("users/me")["timestamp"].string)
      let token = try identity.token(.google, "1", IdentityServer.email("Ana@example.com"))
      let responses = try await app.race(8) { _ in try await app.signIn(.google, token) }
      #expect(responses == [200: 8])
      let response = try await app.signIn(.google, token)
      #expect(response.json["isNew"].bool == false && response.json["user"]["id"].string == ana.id)
      #expect(response.json["user"]["emailVerified"].bool == true)
      #expect(try #require(response.json["user"]["timestamp"].string) > stamp)
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens") == 0)
      // Another person may have registered the address.
      #expect(try await ana.refresh().problem == "session-ended")
      #expect(try await app.takeMails().map(\.type) == ["mail-identity-linked"])
    }
  }

  @Test func `an account that has another way in is not adopted`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana", isVerified: false)
      let token = try identity.token(.google, "1", IdentityServer.email(email))
      let response = try await app.signIn(.google, token)
      #expect(response.json["isNew"].bool == true && response.json["user"]["id"].string != ana.id)
      #expect(try await ana.refresh().status == 200)
    }
  }

  @Test func `the user of such an account can correct a mistyped address, and delete the account`() async throws {
    try await TestApp.run { app in
      let ana = try await register(app, email: "ana@exmaple.com")
      try await ana.editProfile(#"{"email": "ana@example.com"}"#)
      let mail = try #require(try await app.takeMails().last)
      #expect(mail.type == "mail-verify-email" && mail.to == email)
      // Once there is a way in, it is needed.
      let code = try await app.takeCode(of: "ana@exmaple.com").code
      let again = try Phone(app, "ana", try await app.confirmCode(code, of: "ana@exmaple.com"))
      for (method, path, body) in [
        ("PATCH", "users/me", #"{"email": "other@example.com"}"#), ("DELETE", "users/me", "{}"),
        ("POST", "auth/password", #"{"newPassword": "correct horse ana"}"#),
      ] {
        let refused = try await again.send(method, path, body)
        #expect(refused.status == 422 && refused.json["errors"][0]["code"].string == "required", "\(refused.body)")
      }

      let ben = try await app.send("POST", "auth/register", body: #"{"username": "ben", "email": "ben@example.com"}"#)
      let phone = try Phone(app, "ben", ben)
      #expect(try await phone.send("DELETE", "users/me", "{}").status == 204)
      try await app.takeMails()
    }
  }

  @Test func `the first password moves the stamp of the profile`() async throws {
    try await TestApp.run { app in
      let ana = try await register(app, email: email)
      let stamp = try #require(try await ana.get("users/me")["timestamp"].string)
      #expect(try await ana.send("POST", "auth/password", #"{"newPassword": "correct horse ana"}"#).status == 204)
      let me = try await ana.get("users/me")
      #expect(me["hasPassword"].bool == true)
      #expect(try #require(me["timestamp"].string) > stamp)
      try await app.takeMails()
    }
  }
}
