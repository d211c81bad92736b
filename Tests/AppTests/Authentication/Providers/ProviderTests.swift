import Crypto
import CryptoExtras
import Foundation
import Postgres
import Testing

@testable import App

/// Signing in with Apple and Google, against a test provider.
@Suite struct ProviderTests {
  // MARK: Accounts

  @Test func `a new person gets an account, and the same account at the next sign-in`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let claims = IdentityServer.email("ana@gmail.example").merging(["name": #""Ana Duarte""#]) { $1 }
      let first = try await app.signIn(.google, try identity.token(.google, "1", claims), ["device": "phone"])
      #expect(first.status == 200, "\(first.body)")
      #expect(first.json["isNew"].bool == true)
      #expect(first.json["user"]["username"].string == "ana.duarte")
      #expect(first.json["user"]["displayName"].string == "Ana Duarte")
      #expect(first.json["user"]["email"].string == "ana@gmail.example")
      #expect(first.json["tokenType"].string == "Bearer")
      #expect(first.header("Cache-Control") == "no-store")
      #expect(try await app.value("SELECT email_verified_at IS NOT NULL AND password_hash IS NULL FROM users") == true)
      #expect(try await app.value("SELECT device FROM sessions") == "phone")
      let ana = try Phone(app, "ana.duarte", first)
      #expect(try await ana.refreshLists().count == Phone.collections.count)
      #expect(try await ana.refresh().status == 200)

      // The address and the name have changed, but the person is the same.
      let changed = IdentityServer.email("duarte@gmail.example").merging(["name": #""Ana Silva""#]) { $1 }
      let again = try await app.signIn(.google, try identity.token(.google, "1", changed))
      #expect(again.json["isNew"].bool == false)
      #expect(again.json["user"]["id"].string == ana.id)
      #expect(again.json["user"]["displayName"].string == "Ana Duarte")
      // The same id at the other provider is another person, and so is another id.
      for (provider, subject) in [(IdentityProvider.Name.apple, "1"), (.google, "2")] {
        let other = try await app.signIn(provider, try identity.token(provider, subject))
        #expect(other.json["isNew"].bool == true)
        #expect(other.json["user"]["id"].string != ana.id)
      }
    }
  }

  @Test(arguments: [true, false])
  func `of many concurrent sign-ins of a new person, one creates the account and the others find it`(
    _ hasEmail: Bool
  ) async throws {
    try await TestApp.runWithProviders { app, identity in
      // Her name is taken, so each sign-in tries another username. Only the identity shows that they are one person.
      _ = try await app.signUp("ana")
      let token = try identity.token(.google, "1", hasEmail ? IdentityServer.email("new@x.example") : [:])
      let responses = try await withThrowingTaskGroup(of: APIResponse.self) { group in
        for _ in 0..<20 { group.addTask { try await app.signIn(.google, token, ["displayName": "Ana"]) } }
        return try await group.reduce(into: [APIResponse]()) { $0.append($1) }
      }
      #expect(responses.map(\.status) == Array(repeating: 200, count: 20))
      #expect(responses.filter { $0.json["isNew"].bool == true }.count == 1)
      #expect(Set(responses.map { $0.json["user"]["id"].string }).count == 1)
      #expect(try await app.value("SELECT count(*) FROM users") == 2)
      #expect(try await app.value("SELECT count(*) FROM user_stamps") == 2)
    }
  }

  @Test func `a new account gets a free username and a display name`() async throws {
    try await TestApp.runWithProviders { app, identity in
      _ = try await app.signUp("ana")
      try await app.database.execute(
        """
        INSERT INTO retired_usernames (digest, until)
        VALUES (sha256('dev'), now() + interval '1 day'), (sha256('eva'), now() - interval '1 day')
        """)
      let relay = IdentityServer.email("x7y8z9@privaterelay.appleid.com")
      let table:
        [(claims: [String: String], shown: String?, username: Regex<Substring>, displayName: Regex<Substring>)] =
          [
            ([:], "Ana", /ana\d{2,9}/, /Ana/), ([:], "Éloïse Müller", /eloise\.muller/, /Éloïse Müller/),
            ([:], "Dev", /dev\d{2,9}/, /Dev/), ([:], "Eva", /eva/, /Eva/), ([:], "Li", /li\d{2,9}/, /Li/),
            (["name": #""Ben B.""#], "Benny", /benny/, /Benny/), (["name": #""Ben B.""#], nil, /ben\.b/, /Ben B\./),
            // Other users must not learn the address.
            (IdentityServer.email("cleo@x.example"), nil, /user\d{6,9}/, /user\d{6,9}/),
            (relay, nil, /user\d{6,9}/, /user\d{6,9}/), ([:], nil, /user\d{6,9}/, /user\d{6,9}/),
            ([:], "🎉🎉🎉", /user\d{6,9}/, /🎉🎉🎉/),
          ]
      for (index, row) in table.enumerated() {
        let token = try identity.token(.google, "person-\(index)", row.claims)
        let response = try await app.signIn(.google, token, row.shown.map { ["displayName": $0] } ?? [:])
        let (username, name) = (response.json["user"]["username"].string, response.json["user"]["displayName"].string)
        #expect(username?.wholeMatch(of: row.username) != nil, "\(index): \(response.body)")
        #expect(name?.wholeMatch(of: row.displayName) != nil, "\(index): \(response.body)")
      }
    }
  }

  @Test func `a username keeps the usable characters of a name`() {
    for (text, name) in [
      ("Ana Duarte", "ana.duarte"), ("  Anne-Marie  O'Brien ", "anne-marie.obrien"), ("…", ""), ("a", "a"),
      ("._-x-_.", "x"), ("a - b", "a.b"), ("ＡＮＡ", "ana"), ("x\u{0}y", "xy"),
      (String(repeating: "a", count: 99), "\(String(repeating: "a", count: 30))"),
    ] {
      #expect(Username.form(text) == name, "\(text)")
    }
  }

  // MARK: Tokens

  @Test func `a token that is damaged, foreign or out of date is refused, without a reason`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let now = Int(Date().timeIntervalSince1970)
      let good = try identity.token(.google, "1").split(separator: ".").map(String.init)
      func hmac(_ key: Data) -> String {
        let signed = IdentityServer.unsigned(.google, "1", header: #"{"alg":"HS256","kid":"first"}"#)
        let mac = HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: SymmetricKey(data: key))
        return "\(signed).\(Data(mac).base64URL)"
      }
      let none = IdentityServer.unsigned(.google, "1", header: #"{"alg":"none","kid":"first"}"#)
      let publicKey = try identity.publicKey()
      let bad: [(String, String)] = [
        ("garbage", "garbage"), ("two parts", "\(good[0]).\(good[1])"), ("no signature", "\(good[0]).\(good[1])."),
        ("another payload", "\(good[0]).\(try identity.token(.google, "2").split(separator: ".")[1]).\(good[2])"),
        ("none", "\(none)."), ("none with a signature", "\(none).\(good[2])"),
        ("a MAC by the public key", hmac(Data(publicKey.pemRepresentation.utf8))),
        ("a MAC by its other form", hmac(publicKey.derRepresentation)),
        ("RS384", try identity.token(.google, "1", header: #"{"alg":"RS384","kid":"first"}"#)),
        ("no key named", try identity.token(.google, "1", header: #"{"alg":"RS256"}"#)),
        (
          "a critical extension",
          try identity.token(.google, "1", header: #"{"alg":"RS256","kid":"first","crit":["x"]}"#)
        ),
        ("a key that is not published", try identity.token(.google, "1", key: "second")),
        (
          "another key under a published key's id",
          try identity.token(.google, "1", key: "second", header: #"{"alg":"RS256","kid":"first"}"#)
        ),
        ("another audience", try identity.token(.google, "1", ["aud": #""com.example.other""#])),
        ("a second audience", try identity.token(.google, "1", ["aud": #"["com.example.muster", "x"]"#])),
        ("no audience", try identity.token(.google, "1", ["aud": ""])),
        ("an empty audience", try identity.token(.google, "1", ["aud": "[]"])),
        ("another issuer", try identity.token(.google, "1", ["iss": #""https://accounts.google.example""#])),
        ("the other provider", try identity.token(.apple, "1")),
        ("expired", try identity.token(.google, "1", ["exp": "\(now - 40)"])),
        ("without an expiry", try identity.token(.google, "1", ["exp": ""])),
        ("an expiry that is not a time", try identity.token(.google, "1", ["exp": #""tomorrow""#])),
        ("issued tomorrow", try identity.token(.google, "1", ["iat": "\(now + 86_400)", "exp": "\(now + 90_000)"])),
        (
          "valid from tomorrow", try identity.token(.google, "1", ["nbf": "\(now + 86_400)", "exp": "\(now + 90_000)"])
        ),
        ("an empty subject", try identity.token(.google, "")),
        ("a subject that is too long", try identity.token(.google, String(repeating: "1", count: 256))),
      ]
      var bodies: Set<String> = []
      for (what, token) in bad {
        let response = try await app.signIn(.google, token)
        #expect(response.status == 401 && response.problem == "invalid-identity-token", "\(what): \(response.body)")
        #expect(response.header("WWW-Authenticate") == "Bearer", "\(what)")
        bodies.insert(response.withoutRequestID)
      }
      #expect(bodies.count == 1)
      #expect(try await app.value("SELECT count(*) FROM users") == 0)
    }
  }

  @Test func `a session outlives the provider that it began with`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let ana = try Phone(app, "ana", try await app.signIn(.google, try identity.token(.google, "1")))
      // The provider changes its keys, and then it is down. Another process has none of its keys.
      identity.behave { $0.published = ["second"] }
      #expect(try await ana.refresh().status == 200)
      identity.behave { $0.status = 503 }
      try await ServiceProcess.run(of: app, identity.environment) { other in
        let (access, refresh) = (ana.accessToken, ana.refreshToken)
        #expect(try await other.send("GET", "users/me", token: access).status == 200)
        let newcomer = try await other.signIn(.google, try identity.token(.google, "2"))
        #expect(newcomer.problem == "provider-unavailable", "\(newcomer.body)")
        let refreshed = try await other.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(refresh)"}"#)
        #expect(refreshed.status == 200, "\(refreshed.body)")
      }
    }
  }

  @Test func `clocks may differ a little, and Google has two issuer names`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let now = Int(Date().timeIntervalSince1970)
      for claims in [
        ["exp": "\(now - 5)"], ["iat": "\(now + 60)"], ["nbf": "\(now + 5)"], ["iss": #""accounts.google.com""#],
        ["aud": #"["com.example.muster"]"#], ["email": #""ana@x.example""#, "email_verified": #""true""#],
      ] {
        let response = try await app.signIn(.google, try identity.token(.google, "1", claims))
        #expect(response.status == 200, "\(claims): \(response.body)")
      }
      let web = try identity.token(.apple, "1", ["aud": #""com.example.muster.web""#])
      #expect(try await app.signIn(.apple, web).status == 200)
    }
  }

  @Test func `the nonces of token and request must match, and the token may have a digest`() async throws {
    try await TestApp.runWithProviders { app, identity in
      let digest = SHA256.hash(data: Data("n-1".utf8)).map { String(format: "%02x", $0) }.joined()
      let table: [(claim: String?, given: String?, isGood: Bool)] = [
        (nil, nil, true), ("n-1", "n-1", true), (digest, "n-1", true), ("n-1", nil, false), (nil, "n-1", false),
        ("n-1", "n-2", false), (digest.uppercased(), "n-1", false), ("n-1", digest, false), ("n-1", " n-1", false),
      ]
      for row in table {
        let token = try identity.token(.apple, "1", row.claim.map { ["nonce": "\"\($0)\""] } ?? [:])
        let response = try await app.signIn(.apple, token, row.given.map { ["nonce": $0] } ?? [:])
        #expect(response.status == (row.isGood ? 200 : 401), "\(row): \(response.body)")
      }
    }
  }

  @Test func `a sign-in with a provider that is not configured gets 404`() async throws {
    try await TestApp.run { app in
      for provider in IdentityProvider.Name.allCases {
        let response = try await app.signIn(provider, "x")
        #expect(response.status == 404 && response.problem == "provider-not-configured")
      }
    }
  }

  @Test func `without any keys a sign-in gets 503, not a refusal`() async throws {
    try await IdentityServer.run { identity in
      identity.behave { $0.status = 500 }
      try await TestApp.run(identity.environment) { app in
        let response = try await app.signIn(.google, try identity.token(.google, "1"))
        #expect(response.status == 503 && response.problem == "provider-unavailable", "\(response.body)")
        #expect(response.header("Retry-After") == "5")
      }
    }
  }
}
