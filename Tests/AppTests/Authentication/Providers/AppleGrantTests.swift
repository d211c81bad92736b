import Crypto
import Foundation
import Logging
import Postgres
import Testing

@testable import App

/// Apple's grant at a sign-in, and its revocation when the account is deleted.
@Suite struct AppleGrantTests {
  @Test func `Apple's grant is stored sealed, and revoked with the account`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let response = try await app.signIn(
        .apple, try identity.token(.apple, "ana"), ["authorizationCode": "code-of-ana"])
      let ana = try Phone(app, "ana", response)
      let asked = try #require(identity.takeForms().first)
      #expect(asked["grant_type"] == "authorization_code")
      #expect(asked["code"] == "code-of-ana")
      #expect(asked["client_id"] == IdentityServer.clientID)
      try expectSecret(asked["client_secret"])
      let sealed: Data = try #require(try await app.value("SELECT sealed_grant FROM identities"))
      #expect(sealed.range(of: Data("refresh".utf8)) == nil)

      let fresh = try identity.token(.apple, "ana")
      #expect(try await ana.send("DELETE", "users/me", #"{"idToken": "\#(fresh)"}"#).status == 204)
      let worker = self.worker(app)
      // However slow Apple is, no notification waits for it.
      #expect(try await worker.step() == 0)
      // A refusal is recorded, without any secret, and retried.
      identity.behave { $0.grantStatus = 400 }
      try await worker.step(AppleRevocation.queue)
      let error: String? = try await app.value("SELECT last_error FROM apple_revocations")
      #expect(error == "Apple responded with 400 invalid_client")
      identity.behave { $0.grantStatus = 200 }
      try await app.database.execute("UPDATE apple_revocations SET due_at = now()")
      try await worker.runOnce()
      #expect(try await app.value("SELECT count(*) FROM apple_revocations") == 0)
      let forms = identity.takeForms()
      #expect(forms.map { $0["token"] } == ["refresh-code-of-ana", "refresh-code-of-ana"])
      #expect(forms.last?["client_id"] == IdentityServer.clientID)
      #expect(forms.last?["token_type_hint"] == "refresh_token")
      try expectSecret(forms.last?["client_secret"])
    }
  }

  private func worker(_ app: TestApp) -> NotificationWorker {
    NotificationWorker(
      app.dependencies, sender: LogSender(logger: app.dependencies.logger), mailer: NoMailer(), concurrency: 2)
  }

  @Test func `a revocation that never succeeds is given up after a week`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let grant = try AppleGrant("refresh", clientID: "com.example.app", keys: app.dependencies.refreshTokenKeys)
      try await app.database.execute(
        """
        INSERT INTO identities (provider, subject, user_id, sealed_grant)
        VALUES ('apple', '001.abc', \(ana.userID), \(grant.sealed))
        """)
      try await ana.deleteAccount()
      // Apple's key is not configured here.
      for (days, left) in [(6, 1), (8, 0)] {
        try await app.database.execute(
          """
          UPDATE apple_revocations
          SET created_at = now() - make_interval(days => \(Int32(days))), due_at = now()
          """)
        try await worker(app).step(AppleRevocation.queue)
        #expect(
          try await app.value("SELECT count(*) FROM apple_revocations WHERE died_at IS NULL") == left,
          "after \(days) days")
      }
    }
  }

  @Test func `a grant that arrives after the account is gone is revoked`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let proof = Identity(
        provider: .apple, subject: "ana", clientID: IdentityServer.clientID, email: nil, name: nil, issuedAt: Date())
      let grant = try AppleGrant("late", clientID: proof.clientID, keys: app.dependencies.refreshTokenKeys)
      try await app.service.change { try await Identity.keep(grant, of: proof, in: $0) }
      try await worker(app).runOnce()
      #expect(identity.takeForms().map { $0["token"] } == ["late"])
      #expect(try await app.value("SELECT count(*) FROM apple_revocations") == 0)
    }
  }

  @Test func `a form keeps the special characters of a value`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let keys = app.dependencies.refreshTokenKeys
      let secret = "a+b&c=d e%2Bf/\u{e9}?"
      let grants = try #require(app.dependencies.appleGrants)
      try await grants.revoke(try AppleGrant(secret, clientID: "com.example.muster", keys: keys).sealed)
      #expect(identity.takeForms().map { $0["token"] } == [secret])
    }
  }

  /// Expects a JWT for Apple, signed with the key that Apple gave us.
  private func expectSecret(_ secret: String?, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let parts = try #require(secret).split(separator: ".").map(String.init)
    try #require(parts.count == 3)
    let header = try JSON(parsing: try #require(Data(base64URL: parts[0])))
    #expect(header["alg"].string == "ES256" && header["kid"].string == "KEY", sourceLocation: sourceLocation)
    let claims = try JSON(parsing: try #require(Data(base64URL: parts[1])))
    #expect(claims["iss"].string == "TEAM" && claims["sub"].string == IdentityServer.clientID)
    #expect(claims["aud"].string == "https://appleid.apple.com", sourceLocation: sourceLocation)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: try #require(Data(base64URL: parts[2])))
    let isValid = IdentityServer.appleKey.publicKey.isValidSignature(
      signature, for: Data("\(parts[0]).\(parts[1])".utf8))
    #expect(isValid, sourceLocation: sourceLocation)
  }

  @Test func `a sign-in succeeds even if Apple gives no grant`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let token = try identity.token(.apple, "ana")
      identity.behave { $0.grantStatus = 400 }
      #expect(try await app.signIn(.apple, token, ["authorizationCode": "code-of-ana"]).status == 200)
      // The code of another person: its grant must not be stored.
      identity.behave {
        $0.grantStatus = 200
        $0.codeOf = "ben"
      }
      #expect(try await app.signIn(.apple, token, ["authorizationCode": "code-of-ben"]).status == 200)
      #expect(try await app.value("SELECT count(*) FROM identities WHERE sealed_grant IS NOT NULL") == 0)
      #expect(identity.takeForms().count == 2)
      identity.behave { $0.codeOf = nil }
      #expect(try await app.signIn(.google, try identity.token(.google, "1"), ["authorizationCode": "x"]).status == 200)
      #expect(identity.takeForms().isEmpty)
      let ben = try await app.signUp("ben")
      let linked = try await ben.link(.apple, try identity.token(.apple, "ben"), ["authorizationCode": "code-of-ben"])
      #expect(linked.status == 204)
      #expect(try await app.value("SELECT count(*) FROM identities WHERE sealed_grant IS NOT NULL") == 1)
    }
  }

  @Test func `a sealed grant opens only with its own key, and only if it is unchanged`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let keys = app.dependencies.refreshTokenKeys
      let grants = try #require(app.dependencies.appleGrants)
      let grant = try AppleGrant("secret", clientID: "com.example.muster", keys: keys)
      #expect(grant.clientID == "com.example.muster")
      #expect(AppleGrant(sealed: grant.sealed)?.clientID == "com.example.muster")
      try await grants.revoke(grant.sealed)
      #expect(identity.takeForms().map { $0["token"] } == ["secret"])
      let others = AppleGrants(
        settings: grants.settings, client: grants.client, keys: try SigningKeys(SigningKeys.generate()))
      await #expect(throws: DeliveryFailure.self) { try await others.revoke(grant.sealed) }
      for index in grant.sealed.indices {
        var tampered = grant.sealed
        tampered[index] ^= 1
        guard let changed = AppleGrant(sealed: tampered) else { continue }
        await #expect(throws: (any Error).self, "byte \(index)") { try await grants.revoke(changed.sealed) }
      }
      for length in 0..<grant.sealed.count {
        guard let short = AppleGrant(sealed: grant.sealed.prefix(length)) else { continue }
        await #expect(throws: (any Error).self, "\(length) bytes") { try await grants.revoke(short.sealed) }
      }
      #expect(identity.takeForms().isEmpty)
    }
  }
}
