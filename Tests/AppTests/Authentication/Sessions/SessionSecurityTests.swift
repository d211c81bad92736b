import Crypto
import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Attacks on tokens and sessions. `docs/asvs.tsv` names these tests.
@Suite struct SessionSecurityTests {
  /// The header of a JWT (0) or its claims (1).
  private static func part(_ index: Int, of token: String) throws -> JSON {
    let text = String(token.split(separator: ".")[index])
    return try JSON(parsing: try #require(Data(base64URL: text)))
  }

  // MARK: Access tokens

  @Test func `an access token names its user, session, audience and times, and nothing else`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let (header, claims) = (try Self.part(0, of: ana.accessToken), try Self.part(1, of: ana.accessToken))
      let (kid, session) = (try SigningKeys(TestApp.accessTokenKeys).signing.kid, try ana.session)
      #expect(header == .object(["alg": .string("HS256"), "typ": .string("at+jwt"), "kid": .string(kid)]))
      #expect(claims.keys == ["iss", "aud", "sub", "sid", "iat", "exp", "jti", "epoch"])
      #expect(claims["sub"].string == ana.id)
      #expect(claims["sid"].string == session.description)
      let (issued, end) = (try #require(claims["iat"].int), try #require(claims["exp"].int))
      #expect(end - issued == 900)
      let other = try Self.part(1, of: try await ana.signInAgain().accessToken)
      #expect(claims["jti"].string != nil && claims["jti"] != other["jti"])
    }
  }

  @Test func `only a token with the right key, algorithm, type, issuer and audience is accepted`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let mint = try Mint(ana.accessToken)
      let attacker = SymmetricKey(size: .bits256)
      let jwk = ["kty": "oct", "k": attacker.withUnsafeBytes { Data($0).base64URL }]
      let refused: [(what: String, token: String)] = [
        ("another key", try mint.token(key: attacker)),
        ("another key, given in the header", try mint.token(header: ["jwk": jwk], key: attacker)),
        ("another key, at an address", try mint.token(header: ["jku": app.url, "x5u": app.url], key: attacker)),
        ("an unknown key id", try mint.token(header: ["kid": "other"])),
        ("no key id", try mint.token(without: ["kid"])),
        ("another algorithm under our key", try mint.token(header: ["alg": "HS384"])),
        ("yet another", try mint.token(header: ["alg": "HS512"])),
        ("an algorithm of key pairs", try mint.token(header: ["alg": "RS256"])),
        ("another algorithm than the header's", try mint.token(signedAs: "HS512")),
        ("no algorithm", try mint.token(without: ["alg"])),
        ("none", try mint.token(header: ["alg": "none"], signedAs: "none")),
        ("None", try mint.token(header: ["alg": "None"], signedAs: "none")),
        ("our algorithm without a signature", try mint.token(signedAs: "none")),
        ("an identity token's type", try mint.token(header: ["typ": "JWT"])),
        ("no type", try mint.token(without: ["typ"])),
        ("another issuer", try mint.token(claims: ["iss": "https://accounts.google.com"])),
        ("no issuer", try mint.token(without: ["iss"])),
        ("another audience", try mint.token(claims: ["aud": "another service"])),
        ("no audience", try mint.token(without: ["aud"])),
        ("no expiry", try mint.token(without: ["exp"])),
        ("no user", try mint.token(without: ["sub"])),
        ("no session", try mint.token(without: ["sid"])),
      ]
      // Everything else about these tokens is right: this one is accepted.
      let good = try await app.send("GET", "users/me", token: try mint.token())
      #expect(good.status == 200, "\(good.body)")
      for (what, token) in refused {
        let response = try await app.send("GET", "users/me", token: token)
        #expect(
          response.status == 401 && response.problem == "invalid-token", "\(what): \(response.status) \(response.body)")
      }
    }
  }

  @Test func `a token works for one purpose, and in one place`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await app.send("GET", "users/me", token: ana.refreshToken).problem == "invalid-token")
      let refresh = try await app.send(
        "POST", "auth/refresh", body: #"{"refreshToken": "\#(ana.accessToken)"}"#)
      #expect(refresh.status == 401)
      // Neither where logs and histories record it, nor where a browser sends it by itself.
      for query in ["access_token", "accessToken", "token"] {
        #expect(try await app.send("GET", "users/me?\(query)=\(ana.accessToken)").problem == "no-token", "\(query)")
      }
      for header in ["Cookie", "X-Access-Token", "Proxy-Authorization"] {
        let value = header == "Cookie" ? "token=\(ana.accessToken)" : "Bearer \(ana.accessToken)"
        #expect(try await app.send("GET", "users/me", headers: [(header, value)]).problem == "no-token", "\(header)")
      }
    }
  }

  @Test func `a verified token is refused once it has expired`() async throws {
    let tokens = await AccessTokens(keys: try SigningKeys(SigningKeys.generate()), lifetime: 900)
    let (user, session, now) = (User.ID.new(), Session.ID.new(), Timestamp.now())
    let token = try await tokens.sign(user: user, session: session, now: now)
    // Verified, then cached. The last time is a second before its end.
    for seconds in [0, 1, 899] {
      let caller = try await tokens.verify(token, now: now.adding(seconds: seconds))
      #expect(caller.user == user && caller.session == session, "\(seconds)")
    }
    // First still in the cache, then no longer.
    for _ in 1...2 {
      await #expect(throws: AppError.tokenExpired) {
        _ = try await tokens.verify(token, now: now.adding(seconds: 901))
      }
    }
    // A token that was not used in time is not cached by mistake.
    let late = try await tokens.sign(user: user, session: session, now: now)
    for seconds in [901, 902] {
      await #expect(throws: AppError.tokenExpired) {
        _ = try await tokens.verify(late, now: now.adding(seconds: seconds))
      }
    }
  }

  @Test func `keys are rotated without logging anyone out, and a withdrawn key is refused`() async throws {
    let (access, refresh) = (SigningKeys.generate(), SigningKeys.generate())
    let environment = [
      "MUSTER_ACCESS_TOKEN_KEYS": "\(access),\(TestApp.accessTokenKeys)",
      "MUSTER_REFRESH_TOKEN_KEYS": "\(refresh),\(TestApp.refreshTokenKeys)",
    ]
    try await TestApp.run(environment) { app in
      let ana = try await app.signUp("ana")
      let (new, kid) = (try SigningKeys(refresh), try SigningKeys(access).signing.kid)
      #expect(try Self.part(0, of: ana.accessToken)["kid"].string == kid)
      let old = await AccessTokens(keys: try SigningKeys(TestApp.accessTokenKeys), lifetime: 900)
      let earlier = try await old.sign(user: ana.userID, session: try ana.session)
      #expect(try await app.send("GET", "users/me", token: earlier).status == 200)

      // A session from before the rotation: its next token has the new key.
      let (user, oldKeys) = (ana.userID, try SigningKeys(TestApp.refreshTokenKeys))
      let before = try await app.service.change {
        try await Session.start(for: user, device: nil, from: nil, keys: oldKeys, in: $0).refresh
      }
      let text = try before.signed(with: oldKeys)
      #expect(try await ana.refresh(text).status == 200)
      #expect(RefreshToken(ana.refreshToken, keys: new) != nil)

      let withdrawn = try SigningKeys(SigningKeys.generate())
      let foreign = try await AccessTokens(keys: withdrawn, lifetime: 900).sign(user: user, session: try ana.session)
      #expect(try await app.send("GET", "users/me", token: foreign).problem == "invalid-token")
      let stale = try RefreshToken(session: try ana.session, counter: 1, branch: 0, kid: withdrawn.signing.kid)
        .signed(with: withdrawn)
      let response = try await app.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(stale)"}"#)
      #expect(response.status == 401)
      // A token that none of our keys signed ends nothing.
      #expect(try await ana.refresh().status == 200)
    }
  }

  @Test func `responses with tokens must not be stored`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let name = #""username": "ben", "email": "ben@example.com""#
      for response in [
        try await app.send("POST", "auth/register", body: #"{\#(name), "password": "correct horse ben"}"#),
        try await app.logIn("ana", ana.password),
        try await ana.refresh(),
      ] {
        #expect(response.json["refreshToken"].string != nil)
        #expect(response.header("Cache-Control") == "no-store")
        #expect(response.header("Set-Cookie") == nil)
      }
    }
  }

  // MARK: Sessions

  @Test func `each login starts a new session, whatever the request contains`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let first = try ana.session
      // An attacker who could choose a user's session would share it with them.
      let wanted = """
        "sid": "\(first)", "session": "\(first)", "id": "\(first)", "refreshToken": "\(ana.refreshToken)"
        """
      let response = try await app.send(
        "POST", "auth/login", body: #"{"login": "ana", "password": "correct horse ana", \#(wanted)}"#,
        headers: [("Cookie", "sid=\(first)")], token: ana.accessToken)
      let again = try Phone(app, "ana", response)
      #expect(again.accessToken != ana.accessToken && again.refreshToken != ana.refreshToken)
      var sessions: Set = [first, try again.session]
      for _ in 0..<20 { sessions.insert(try await ana.signInAgain().session) }
      #expect(sessions.count == 22)
    }
  }

  @Test func `an operator ends sessions in the database, and the service follows`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let tablet = try await ana.signInAgain()
      try await app.database.execute(
        """
        UPDATE sessions SET ended_at = clock_timestamp()
        WHERE ended_at IS NULL AND user_id = (SELECT id FROM users WHERE username_key = 'ana')
        """)
      for phone in [ana, tablet] {
        try await eventually { try await phone.send("GET", "users/me").problem == "session-ended" }
        #expect(try await phone.refresh().problem == "session-ended")
      }
      _ = try await ben.get("users/me")
    }
  }
}

/// Makes tokens from a valid one, as an attacker with a key could.
private struct Mint {
  private let header: [String: Any]
  private let claims: [String: Any]
  private let key: SymmetricKey

  init(_ token: String) throws {
    let parts = token.split(separator: ".").map { Data(base64URL: String($0)) ?? Data() }
    try #require(parts.count == 3)
    header = try JSONSerialization.jsonObject(with: parts[0]) as? [String: Any] ?? [:]
    claims = try JSONSerialization.jsonObject(with: parts[1]) as? [String: Any] ?? [:]
    key = try SigningKeys(TestApp.accessTokenKeys).signing.key
  }

  /// - Parameters:
  ///   - missing: members of the header or the claims to leave out.
  ///   - algorithm: signs the token; by default, the header's algorithm.
  func token(
    header: [String: Any] = [:], claims: [String: Any] = [:], without missing: Set<String> = [],
    signedAs algorithm: String? = nil, key: SymmetricKey? = nil
  ) throws -> String {
    let header = self.header.merging(header) { $1 }.filter { !missing.contains($0.key) }
    let claims = self.claims.merging(claims) { $1 }.filter { !missing.contains($0.key) }
    let parts = try [header, claims].map { try JSONSerialization.data(withJSONObject: $0).base64URL }
    let (text, secret) = (Data(parts.joined(separator: ".").utf8), key ?? self.key)
    let code =
      switch algorithm ?? header["alg"] as? String {
      case "none": Data()
      case "HS384": Data(HMAC<SHA384>.authenticationCode(for: text, using: secret))
      case "HS512": Data(HMAC<SHA512>.authenticationCode(for: text, using: secret))
      default: Data(HMAC<SHA256>.authenticationCode(for: text, using: secret))
      }
    return parts.joined(separator: ".") + "." + code.base64URL
  }
}
