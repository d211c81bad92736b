import AsyncHTTPClient
import Foundation
import HTTPServer
import JWTKit
import NIOHTTP1
import Postgres

/// Gets grants from Apple and revokes them.
struct AppleGrants: Sendable {
  struct Settings: Sendable {
    let teamID: String
    let keyID: String
    let key: ES256PrivateKey
    let tokenURL: String
    let revokeURL: String
  }

  let settings: Settings
  let client: HTTPClient
  let keys: SigningKeys

  /// Exchanges the code that came with an identity token. A sign-in waits for this, so the timeout is short.
  ///
  /// - Throws: an error if Apple refuses, or if the code and the token belong to different people.
  func exchange(_ code: String, of identity: Identity) async throws -> AppleGrant {
    let response = try await ask(
      settings.tokenURL, as: identity.clientID, within: .seconds(3), ["grant_type": "authorization_code", "code": code])
    guard case .object(let members) = response.json, case .string(let refreshToken) = members["refresh_token"],
      case .string(let idToken) = members["id_token"]
    else { throw DeliveryFailure(description: "Apple's response lacks a token") }
    // The token comes straight from Apple, so there is no need to verify its signature.
    guard IdentityProvider.part(1, of: idToken)?["sub"] == .string(identity.subject) else {
      throw DeliveryFailure(description: "the authorization code belongs to another person")
    }
    return try AppleGrant(refreshToken, clientID: identity.clientID, keys: keys)
  }

  /// Revokes a grant. Idempotent.
  func revoke(_ sealed: Data) async throws {
    guard let grant = AppleGrant(sealed: sealed) else {
      throw DeliveryFailure(description: "the row holds no grant", remedy: .none)
    }
    _ = try await ask(
      settings.revokeURL, as: grant.clientID, within: .seconds(4),
      ["token": try grant.opened(with: keys), "token_type_hint": "refresh_token"])
  }

  private func ask(
    _ url: String, as clientID: String, within limit: Duration, _ fields: [String: String]
  ) async throws -> OutgoingResponse {
    var form = fields
    form["client_id"] = clientID
    form["client_secret"] = try await secret(of: clientID)
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
    request.body = .bytes(ByteBuffer(string: Self.encoded(form)))
    let response = try await client.response(to: request, within: limit)
    guard response.status == 200 else {
      var word = ""
      if case .object(let members) = response.json, case .string(let error) = members["error"],
        error.wholeMatch(of: /[a-z_]{1,40}/) != nil
      {
        word = " " + error
      }
      throw DeliveryFailure(description: "Apple responded with \(response.status)\(word)")
    }
    return response
  }

  private static func encoded(_ form: [String: String]) -> String {
    var parts = URLComponents()
    parts.queryItems = form.map { URLQueryItem(name: $0, value: $1) }
    // URLs may have a plus, but form parsers read it as a space.
    return (parts.percentEncodedQuery ?? "").replacing("+", with: "%2B")
  }

  private struct SecretClaims: JWTPayload {
    let iss: IssuerClaim
    let iat: IssuedAtClaim
    let exp: ExpirationClaim
    let aud: AudienceClaim
    let sub: SubjectClaim

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  /// Apple's kind of client secret: a JWT signed with the key that Apple gave us.
  private func secret(of clientID: String) async throws -> String {
    let now = Date.wholeSecond
    let claims = SecretClaims(
      iss: IssuerClaim(value: settings.teamID), iat: IssuedAtClaim(value: now),
      exp: ExpirationClaim(value: now.addingTimeInterval(300)), aud: AudienceClaim(value: "https://appleid.apple.com"),
      sub: SubjectClaim(value: clientID))
    let kid = JWKIdentifier(string: settings.keyID)
    return try await JWTKeyCollection().add(ecdsa: settings.key, kid: kid).sign(claims, kid: kid)
  }
}

/// A sealed refresh token from Apple. Its only use is to tell Apple that an account is gone.
struct AppleGrant: Sendable {
  private static let label = "muster apple grant"

  private let box: Sealed

  var sealed: Data { box.bytes }
  /// The one of our clients that it was given to.
  var clientID: String { box.note }

  init(_ refreshToken: String, clientID: String, keys: SigningKeys) throws {
    box = try Sealed(refreshToken, note: clientID, label: Self.label, keys: keys)
  }

  /// Nil unless the bytes have the form of a grant.
  init?(sealed: Data) {
    guard let box = Sealed(bytes: sealed) else { return nil }
    self.box = box
  }

  /// Decrypts the refresh token.
  func opened(with keys: SigningKeys) throws -> String {
    try box.opened(label: Self.label, keys: keys)
  }

  /// Queues its revocation, in a row that does not name the user.
  var enqueueing: SQL { "INSERT INTO apple_revocations (sealed_grant) VALUES (\(sealed))" }
}

/// A grant that Apple must revoke: a row of `apple_revocations`.
enum AppleRevocation {
  static let queue = LeaseQueue(table: "apple_revocations", chain: nil, columns: "q.sealed_grant")

  /// Seconds after which a revocation that still fails becomes a dead letter: a week.
  private static let patience = 7 * 86_400

  /// - Parameter grants: nil if Apple's key is not configured.
  static func source(_ grants: AppleGrants?, in database: Database) -> Dispatcher.Source {
    let policy = DeliveryState.Policy(patience: patience, longestPause: .milliseconds(500))
    return Dispatcher.Source(queue: queue, policy: policy) { rows in
      let leased = Set(
        try await database.rows("SELECT q.id FROM \(queue.rows(of: rows.map(\.lease)))").map { try $0[0] as Int64 })
      return Dictionary(
        uniqueKeysWithValues: rows.filter { leased.contains($0.id) }.map { row in
          let send = Dispatcher.Send(channel: .apple) {
            guard let grants else { throw DeliveryFailure(description: "Apple's key is not configured") }
            try await grants.revoke(try row.fields[0])
          }
          return (row.id, .send(send))
        })
    }
  }
}
