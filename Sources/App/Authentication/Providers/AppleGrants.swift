import Hummingbird
import AsyncHTTPClient
import Foundation
import JWTKit
import NIOCore
import NIOHTTP1

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
    request.body = .bytes(ByteBuffer(string: try Self.encoded(form)))
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

  private static func encoded(_ form: [String: String]) throws -> String {
    // The encoder leaves a plus as it is, but form parsers read it as a space.
    try URLEncodedFormEncoder().encode(form).replacing("+", with: "%2B")
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
