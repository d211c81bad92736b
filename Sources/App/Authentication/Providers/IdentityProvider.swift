import JWTKit
import Crypto
import Foundation
import Logging
import Postgres

/// Somebody else who vouches for people: Apple or Google, with tokens signed by keys that they publish.
struct IdentityProvider: Sendable {
  enum Name: String, CaseIterable, Sendable, SQLValue {
    case apple, google
  }

  struct Settings: Sendable {
    /// Whom tokens must be made for; without any, nobody signs in with this provider.
    var clientIDs: [String]
    var keysURL: String
  }

  /// Clocks may disagree by so many seconds about the end of a token.
  private static let skew = 30.0
  /// A token from further ahead is not of this time.
  private static let farFuture = 300.0

  let name: Name
  let keys: ProviderKeys
  private let clientIDs: Set<String>

  init(_ name: Name, clientIDs: [String], keys: ProviderKeys) {
    self.name = name
    self.clientIDs = Set(clientIDs)
    self.keys = keys
  }

  /// The forms that `iss` has.
  static func issuers(of name: Name) -> [String] {
    switch name {
    case .apple: ["https://appleid.apple.com"]
    case .google: ["https://accounts.google.com", "accounts.google.com"]
    }
  }

  /// Verifies an identity token: its signature by the provider's keys, for whom it was made and until when, and that it
  /// belongs to the sign-in that the nonce was made up for.
  ///
  /// - Throws: ``AppError`` `invalid-identity-token`, whatever is wrong: the log says what. `provider-unavailable` while
  ///   there are no keys to verify with.
  func verify(_ token: IdentityToken, logger: Logger) async throws -> Identity {
    do {
      return try identity(of: try await claims(of: token.text), nonce: token.nonce, now: Date())
    } catch let refusal as Refusal {
      logger.info(
        "an identity token was refused", metadata: ["provider": "\(name.rawValue)", "reason": "\(refusal.reason)"])
      throw AppError.invalidIdentityToken
    }
  }

  /// Why a token is refused, without any part of it.
  private struct Refusal: Error {
    let reason: StaticString
  }

  private func claims(of token: String) async throws -> IdentityClaims {
    // The library takes any key of its own for a token whose header says nothing useful.
    guard let header = Self.part(0, of: token), header["alg"] == .string("RS256"), header["crit"] == nil,
      case .string(let id) = header["kid"], header.allSatisfy({ $0.key.isASCII && $0.value.isASCIIString })
    else { throw Refusal(reason: "its header is not one of RS256 with a key's id") }
    guard let known = try await keys.verifying(id) else { throw Refusal(reason: "the provider has no such key") }
    do {
      return try await known.verify(token)
    } catch {
      throw Refusal(reason: "its signature is wrong, or a claim is missing or malformed")
    }
  }

  private func identity(of claims: IdentityClaims, nonce: String?, now: Date) throws -> Identity {
    guard Self.issuers(of: name).contains(claims.iss.value) else { throw Refusal(reason: "it has another issuer") }
    // One that was made for others as well could be shown to us by them.
    guard let clientID = claims.aud.clients.first, claims.aud.clients.allSatisfy({ clientIDs.contains($0) }) else {
      throw Refusal(reason: "it was made for a client that is not configured")
    }
    guard claims.exp.value.addingTimeInterval(Self.skew) > now else { throw Refusal(reason: "it has expired") }
    let begin = max(claims.iat.value, claims.nbf?.value ?? claims.iat.value)
    guard begin < now.addingTimeInterval(Self.farFuture) else { throw Refusal(reason: "it is of the future") }
    guard Self.matches(claims.nonce, nonce) else { throw Refusal(reason: "its nonce is not the one given") }
    guard (1...255).contains(claims.sub.value.utf8.count), !claims.sub.value.utf8.contains(0) else {
      throw Refusal(reason: "its subject is no id")
    }
    return Identity(
      provider: name, subject: claims.sub.value, clientID: clientID,
      email: claims.emailVerified?.value == true ? claims.email.flatMap(Self.address) : nil,
      name: claims.name.flatMap(Self.displayName), issuedAt: claims.iat.value)
  }

  /// A nonce is in both or in neither: a token of another sign-in must not pass by leaving it out. Apps give Apple its
  /// digest and us the nonce itself.
  private static func matches(_ claim: String?, _ given: String?) -> Bool {
    guard let claim, let given else { return claim == nil && given == nil }
    let digest = SHA256.hash(data: Data(given.utf8)).map { String(format: "%02x", $0) }.joined()
    return claim.hasSameBytes(as: given) || claim.hasSameBytes(as: digest)
  }

  // What we cannot keep is as good as absent.
  private static func address(_ text: String) -> String? { try? Fields.Rule<String>.email.read(.string(text)) }

  private static func displayName(_ text: String) -> String? {
    try? Fields.Rule<String>.line(1...100).read(.string(text))
  }

  /// A part of a token that nobody has verified yet.
  static func part(_ index: Int, of token: String) -> JSON.Object? {
    guard token.isASCII else { return nil }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = Data(base64URL: String(parts[index])),
      case .object(let members) = try? JSON(parsing: bytes)
    else { return nil }
    return members
  }
}

extension JSON {
  fileprivate var isASCIIString: Bool {
    if case .string(let text) = self { return text.isASCII }
    return false
  }
}

extension AppError {
  static let invalidIdentityToken = AppError(
    .unauthorized, "invalid-identity-token", "This identity token does not prove who somebody is: sign in anew.")
  static let providerNotConfigured = AppError(
    .notFound, "provider-not-configured", "Nobody signs in with this provider here.")
}
