import Foundation
import JWTKit

/// The claims of an identity token that Muster reads. The library's own types for Apple and Google reject a token at
/// the exact second of its expiry, and for claims that do not matter here.
struct IdentityClaims: ProviderClaims {
  struct Audience: Codable, Sendable {
    let clients: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do {
        clients = [try container.decode(String.self)]
      } catch is DecodingError {
        clients = try container.decode([String].self)
      }
    }
  }

  private enum CodingKeys: String, CodingKey {
    case iss, sub, aud, exp, iat, nbf, nonce, email, name
    case emailVerified = "email_verified"
  }

  let iss: IssuerClaim
  let sub: SubjectClaim
  let aud: Audience
  let exp: ExpirationClaim
  let iat: IssuedAtClaim
  let nbf: NotBeforeClaim?
  let nonce: String?
  let email: String?
  let emailVerified: BoolClaim?
  let name: String?

  var expiry: Date { exp.value }
}

/// The claims that all tokens of a provider have.
protocol ProviderClaims: JWTPayload {
  var iss: IssuerClaim { get }
  var aud: IdentityClaims.Audience { get }
  var iat: IssuedAtClaim { get }
  var nbf: NotBeforeClaim? { get }
  var expiry: Date { get }
}

extension ProviderClaims {
  /// ``IdentityProvider`` checks all claims, because it knows the configuration.
  func verify(using algorithm: some JWTAlgorithm) throws {}
}
