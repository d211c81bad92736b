import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Which account an identity signs in to: never one with the same address, only the linked one.
@Suite struct ProviderLinkTests {
  // MARK: Addresses

  @Test func `an address that an account has verified is not taken over`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      let token = try identity.token(.google, "1", IdentityServer.email("ANA@example.com"))
      let refused = try await app.signIn(.google, token)
      #expect(refused.status == 409 && refused.problem == "email-belongs-to-account", "\(refused.body)")
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
      // But a user who can log in to the account can link the identity.
      #expect(try await ana.link(.google, token).status == 204)
      let response = try await app.signIn(.google, token)
      #expect(response.json["user"]["id"].string == ana.id)
      #expect(response.json["isNew"].bool == false)
    }
  }

  @Test func `an address that its account has not verified goes to the provider's user`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana", isVerified: false)
      let stale = try await ana.stale {
        let token = try identity.token(.google, "1", IdentityServer.email("ana@EXAMPLE.com"))
        let response = try await app.signIn(.google, token)
        #expect(response.json["isNew"].bool == true, "\(response.body)")
        #expect(response.json["user"]["email"].string == "ana@example.com")
      }
      #expect(stale == [.profile])
      #expect(try await ana.get("users/me")["email"] == .null)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens WHERE email_key = 'ana@example.com'") == 0)
      let waiting: Int? = try await app.value(
        """
        SELECT count(*) FROM mails
        WHERE mail_token_id IS NOT NULL AND mail_token_id NOT IN (SELECT id FROM mail_tokens)
        """)
      #expect(waiting == 0)
      #expect(try await app.logIn("ana", ana.password).status == 200)
    }
  }

  @Test func `an address that the provider has not verified is ignored`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      let unverified = IdentityServer.email("ana@example.com", isVerified: false)
      for (subject, claims) in [("1", unverified), ("2", ["email": #""ana@example.com""#])] {
        let response = try await app.signIn(.google, try identity.token(.google, subject, claims))
        #expect(response.json["user"]["email"] == .null, "\(response.body)")
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
      // An identity that has created an account belongs to that account.
      #expect(try await app.signIn(.google, second).json["isNew"].bool == true)
      #expect(try await ben.link(.google, second).problem == "identity-taken")
      #expect(try await ben.link(.google, "garbage").problem == "invalid-identity-token")
      let anonymous = try await app.send(
        "POST", "auth/google/link", body: #"{"idToken": "\#(first)", "currentPassword": "x"}"#)
      #expect(anonymous.problem == "no-token")
    }
  }

  @Test func `linking needs the password again`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      let (apple, google) = (try identity.token(.apple, "1"), try identity.token(.google, "1"))
      let path = "auth/google/link"
      let missing = try await ana.send("POST", path, #"{"idToken": "\#(google)"}"#)
      #expect(missing.status == 422 && missing.badFields == ["currentPassword"], "\(missing.body)")
      let wrong = try await ana.send("POST", path, #"{"idToken": "\#(google)", "currentPassword": "wrong horse"}"#)
      #expect(wrong.status == 403 && wrong.problem == "wrong-password")
      // Neither the new identity nor one that is not linked proves who the caller is.
      for other in [google, apple] {
        let refused = try await ana.send(
          "POST", path, #"{"idToken": "\#(google)", "currentIdToken": "\#(other)"}"#)
        #expect(refused.status == 403 && refused.problem == "identity-not-proven")
      }
      #expect(try await app.value("SELECT count(*) FROM identities") == 0)
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      #expect(try await ana.link(.apple, apple).status == 204)
      let mails: Int? = try await app.value(
        """
        SELECT count(*) FROM mails
        WHERE type = 'mail-identity-linked' AND payload->>'to' = 'ana@example.com'
        """)
      #expect(mails == 1)
      // A user without a password sends a token of a linked identity.
      let linked = try await ana.send("POST", path, #"{"idToken": "\#(google)", "currentIdToken": "\#(apple)"}"#)
      #expect(linked.status == 204)
      #expect(try await app.signIn(.google, google).json["user"]["id"].string == ana.id)
    }
  }

  /// Whether the identity is hers, or would only take her unverified address.
  @Test(arguments: [true, false]) func `sign-ins that lock one user wait for their turn`(isLinked: Bool) async throws {
    try await TestApp.runWithProviders(["MUSTER_THROTTLING": "off"]) { app, identity in
      let ana = try await app.signUp("ana", isVerified: false)
      let token = try identity.token(.google, "1", isLinked ? [:] : IdentityServer.email("ana@example.com"))
      if isLinked { #expect(try await ana.link(.google, token).status == 204) }
      let queue = app.dependencies.writeQueue
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      let signIns = try await elsewhere.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
        let signIns = (0..<6).map { _ in Task { try await app.signIn(.google, token).status } }
        try await eventually { queue.waiting(at: .actor(ana.userID)) == signIns.count - 1 }
        return signIns
      }
      for signIn in signIns { #expect(try await signIn.value == 200) }
      #expect(queue.isIdle)
    }
  }

  @Test func `an identity is unlinked, but never the last way to log in`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      #expect(try await ana.get("users/me")["hasPassword"].bool == true)
      #expect(try await ana.get("users/me")["identities"] == .array([]))
      let google = try identity.token(.google, "1")
      let linking = try await ana.stale { _ = try await ana.link(.google, google) }
      #expect(linking == [.profile])
      #expect(try await ana.get("users/me")["identities"] == .array([.string("google")]))
      for (body, problem) in [
        ("{}", "invalid-fields"), (#"{"currentPassword": "wrong horse"}"#, "wrong-password"),
        (#"{"currentIdToken": "\#(try identity.token(.google, "2"))"}"#, "identity-not-proven"),
      ] {
        #expect(try await ana.send("DELETE", "auth/google", body).problem == problem, "\(body)")
      }
      let proof = #"{"currentPassword": "\#(ana.password)"}"#
      for expected in [[.profile], []] as [Set<App.Collection>] {
        let stale = try await ana.stale {
          let unlinked = try await ana.send("DELETE", "auth/google", proof)
          #expect(unlinked.status == 204, "\(unlinked.body)")
        }
        #expect(stale == expected)
      }
      #expect(try await ana.get("users/me")["identities"] == .array([]))
      let mails: Int? = try await app.value("SELECT count(*) FROM mails WHERE type = 'mail-identity-unlinked'")
      #expect(mails == 1)
      // The identity is free again, and its account has no other way in.
      let other = try await app.signIn(.google, google)
      #expect(other.json["isNew"].bool == true)
      let token = try #require(other.json["accessToken"].string)
      let bearer = [("Authorization", "Bearer \(token)")]
      let unlinking = #"{"currentIdToken": "\#(google)"}"#
      let refused = try await app.send("DELETE", "auth/google", body: unlinking, headers: bearer)
      #expect(refused.status == 409 && refused.problem == "last-way-in", "\(refused.body)")
      let me = try await app.send("GET", "users/me", headers: bearer)
      #expect(me.json["hasPassword"].bool == false && me.json["identities"] == .array([.string("google")]))
      // Of two identities, each may go, but not both, even at once.
      let linked = try await app.send(
        "POST", "auth/apple/link",
        body: #"{"idToken": "\#(try identity.token(.apple, "1"))", "currentIdToken": "\#(google)"}"#, headers: bearer)
      #expect(linked.status == 204, "\(linked.body)")
      async let one = app.send("DELETE", "auth/google", body: unlinking, headers: bearer)
      async let two = app.send("DELETE", "auth/apple", body: unlinking, headers: bearer)
      let statuses = try await [one.status, two.status]
      #expect(statuses.count { $0 == 204 } == 1, "\(statuses)")
      let left: Int? = try await app.value("SELECT count(*) FROM identities")
      #expect(left == 1)
    }
  }

  @Test func `an ended session links nothing, however late the body of its request arrives`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      let session = try ana.session
      let mine = try await app.dependencies.identityProviders.verify(
        IdentityToken(text: try identity.token(.google, "1"), nonce: nil), logger: app.dependencies.logger)
      try await app.database.execute("UPDATE sessions SET ended_at = now()")
      await #expect(throws: AppError.sessionEnded) {
        try await app.service.change { try await Identity.link(mine, to: ana.userID, by: session, in: $0) }
      }
      #expect(try await app.value("SELECT count(*) FROM identities") == 0)
    }
  }

  @Test func `a sign-in that waits for a reset does not find the identity that the reset removes`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try await app.signUp("ana")
      _ = try await ana.link(.google, try identity.token(.google, "1"))
      let token = try identity.token(.google, "1")
      let signingIn = try await app.database.transaction { reset -> Task<APIResponse, any Error> in
        _ = try await reset.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR NO KEY UPDATE")
        let signingIn = Task { try await app.signIn(.google, token) }
        let waiting: SQL = """
          SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
          """
        while try await app.value(waiting) != 1 { try await Task.sleep(for: .milliseconds(5)) }
        _ = try await reset.rows("DELETE FROM identities")
        return signingIn
      }
      let response = try await signingIn.value
      #expect(response.json["isNew"].bool == true, "\(response.body)")
      #expect(response.json["user"]["id"].string != ana.id)
    }
  }

  @Test func `of two users who link one identity at once, one gets it`() async throws {
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

  // MARK: Reauthentication

  @Test func `a fresh token of a linked identity proves who the caller is`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      _ = try await ana.link(.google, try identity.token(.google, "1"))
      func proves(_ token: String, nonce: String? = nil, is phone: Phone) async throws -> Bool {
        try await Identity.confirms(
          IdentityToken(text: token, nonce: nonce), is: phone.userID, providers: app.dependencies.identityProviders,
          logger: app.dependencies.logger, in: app.service)
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
