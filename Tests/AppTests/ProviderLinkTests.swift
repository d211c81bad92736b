import Foundation
import Postgres
import Testing

@testable import App

/// Whose account it is that a provider's person gets: by address never, by linking only.
@Suite struct ProviderLinkTests {
  // MARK: Addresses

  @Test func `an address that somebody has verified is not taken over`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      let token = try identity.token(.google, "1", IdentityServer.email("ANA@example.com"))
      let refused = try await app.signIn(.google, token)
      #expect(refused.status == 409 && refused.problem == "email-belongs-to-account", "\(refused.body)")
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
      // But whoever can sign in to the account can link it.
      #expect(try await ana.link(.google, token).status == 204)
      let answer = try await app.signIn(.google, token)
      #expect(answer.json["user"]["id"].string == ana.id)
      #expect(answer.json["isNew"].bool == false)
    }
  }

  @Test func `an address that nobody has verified goes to whom the provider has`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      let stale = try await ana.stale {
        let token = try identity.token(.google, "1", IdentityServer.email("ana@EXAMPLE.com"))
        let answer = try await app.signIn(.google, token)
        #expect(answer.json["isNew"].bool == true, "\(answer.body)")
        #expect(answer.json["user"]["email"].string == "ana@EXAMPLE.com")
      }
      #expect(stale == [.profile])
      #expect(try await ana.get("users/me")["email"] == .null)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens WHERE lower(email) = 'ana@example.com'") == 0)
      let waiting: Int? = try await app.value(
        "SELECT count(*) FROM notification_queue AS q WHERE NOT EXISTS (SELECT 1 FROM mail_tokens WHERE id = q.subject_id)"
      )
      #expect(waiting == 0)
      #expect(try await app.logIn("ana", ana.password).status == 200)
    }
  }

  @Test func `an address that the provider has not verified counts for nothing`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      let unverified = IdentityServer.email("ana@example.com", isVerified: false)
      for (subject, claims) in [("1", unverified), ("2", ["email": #""ana@example.com""#])] {
        let answer = try await app.signIn(.google, try identity.token(.google, subject, claims))
        #expect(answer.json["user"]["email"] == .null, "\(answer.body)")
      }
      #expect(try await ana.get("users/me")["email"].string == "ana@example.com")
    }
  }

  // MARK: Linking

  @Test func `an identity is linked to one account, and an account to one identity of each provider`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let (first, second) = (try identity.token(.google, "1"), try identity.token(.google, "2"))
      for _ in 1...2 { #expect(try await ana.link(.google, first).status == 204) }
      #expect(try await ana.link(.google, second).problem == "already-linked")
      #expect(try await ben.link(.google, first).problem == "identity-taken")
      #expect(try await ana.link(.apple, try identity.token(.apple, "1")).status == 204)
      #expect(try await app.signIn(.google, first).json["user"]["id"].string == ana.id)
      // One that has made an account belongs to that.
      #expect(try await app.signIn(.google, second).json["isNew"].bool == true)
      #expect(try await ben.link(.google, second).problem == "identity-taken")
      #expect(try await ben.link(.google, "garbage").problem == "invalid-identity-token")
      let anonymous = try await app.send("POST", "auth/google/link", body: #"{"idToken": "\#(first)"}"#)
      #expect(anonymous.problem == "no-token")
    }
  }

  @Test func `of two who link one identity at once, one has it`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let phones = [try await app.signUp("ana"), try await app.signUp("ben")]
      for round in 1...5 {
        let token = try identity.token(round % 2 == 0 ? .google : .apple, "\(round)")
        let provider = round % 2 == 0 ? IdentityProvider.Name.google : .apple
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
          for phone in phones + phones { group.addTask { try await phone.link(provider, token).status } }
          return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(statuses.sorted() == [204, 204, 409, 409])
        try await app.database.execute("DELETE FROM identities")
      }
    }
  }

  // MARK: Proof

  @Test func `a fresh token of a linked identity proves who is asking`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      _ = try await ana.link(.google, try identity.token(.google, "1"))
      func proves(_ token: String, nonce: String? = nil, is phone: Phone) async throws -> Bool {
        try await Identity.proves(
          token, nonce: nonce, is: phone.userID, providers: app.dependencies.identityProviders,
          logger: app.dependencies.logger, in: app.database)
      }
      let now = Int(Date().timeIntervalSince1970)
      let fresh = try identity.token(.google, "1", ["iat": "\(now - 500)", "nonce": #""n""#])
      let table: [(String, String?, Phone, Bool)] = [
        (fresh, "n", ana, true), (fresh, "n", ben, false), (fresh, nil, ana, false), ("garbage", nil, ana, false),
        (try identity.token(.google, "2"), nil, ana, false), (try identity.token(.apple, "1"), nil, ana, false),
        (try identity.token(.google, "1", ["iat": "\(now - 700)"]), nil, ana, false),
      ]
      for (index, (token, nonce, phone, expected)) in table.enumerated() {
        let isProof = try await proves(token, nonce: nonce, is: phone)
        #expect(isProof == expected, "\(index)")
      }
    }
  }
}
