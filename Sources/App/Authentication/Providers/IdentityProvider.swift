import Crypto
import Foundation
import JWTKit
import Logging
import Postgres
import ServiceLifecycle

/// A service that vouches for people: Apple or Google. Its tokens are signed with keys that it publishes.
struct IdentityProvider: Sendable {
  enum Name: String, CaseIterable, Sendable, SQLValue {
    case apple, google
  }

  struct Settings: Sendable {
    /// The clients that tokens may be made for. If there are none, no one can sign in with this provider.
    var clientIDs: [String]
    var keysURL: String
  }

  /// How far clocks may differ at the end of a token, in seconds.
  private static let skew = 30.0
  /// How far ahead a token may begin, in seconds.
  private static let farFuture = 300.0

  let name: Name
  let keys: ProviderKeys
  private let clientIDs: Set<String>

  init(_ name: Name, clientIDs: [String], keys: ProviderKeys) {
    self.name = name
    self.clientIDs = Set(clientIDs)
    self.keys = keys
  }

  /// The values that `iss` may have.
  fileprivate static func issuers(of name: Name) -> [String] {
    switch name {
    case .apple: ["https://appleid.apple.com"]
    case .google: ["https://accounts.google.com", "accounts.google.com"]
    }
  }

  /// Verifies an identity token: its signature by the provider's keys, its audience, its expiry, and that it belongs to
  /// the sign-in that the nonce was created for.
  ///
  /// - Throws: ``AppError`` `invalid-identity-token` for any fault; the log names it. `provider-unavailable` while
  ///   there are no keys to verify with.
  func verify(_ token: IdentityToken, logger: Logger) async throws -> Identity {
    try await read(token.text, else: .invalidIdentityToken, logger: logger) {
      try identity(of: $0, clientID: $1, nonce: token.nonce)
    }
  }

  /// Verifies what Apple says about one of its users, as an identity token is verified.
  ///
  /// - Throws: ``AppError`` `invalid-notification` for any fault; the log names it. `provider-unavailable` while there
  ///   are no keys to verify with.
  func verify(notification: String, logger: Logger) async throws -> AppleNotification {
    try await read(notification, else: .invalidNotification, logger: logger) { (claims: AppleNotification.Claims, _) in
      guard let notification = AppleNotification(claims) else { throw Refusal(reason: "its events are malformed") }
      return notification
    }
  }

  /// - Parameter make: gets the claims and the client that the token was made for.
  private func read<Claims: ProviderClaims, Value>(
    _ token: String, else error: AppError, logger: Logger, _ make: (Claims, _ clientID: String) throws -> Value
  ) async throws -> Value {
    do {
      let claims: Claims = try await claims(of: token)
      return try make(claims, try clientID(checking: claims, now: Date()))
    } catch let refusal as Refusal {
      logger.info(
        "a provider's token was refused", metadata: ["provider": "\(name.rawValue)", "reason": "\(refusal.reason)"])
      throw error
    }
  }

  /// Why a token is refused. Contains no part of the token.
  private struct Refusal: Error {
    let reason: StaticString
  }

  private func claims<Claims: ProviderClaims>(of token: String) async throws -> Claims {
    // Without a useful header, the library would accept any of its keys.
    guard let header = Self.part(0, of: token), header["alg"] == .string("RS256"), header["crit"] == nil,
      case .string(let id) = header["kid"], header.allSatisfy({ $0.key.isASCII && $0.value.isASCIIString })
    else { throw Refusal(reason: "its header does not name RS256 and a key id") }
    guard let known = try await keys.verifying(id) else { throw Refusal(reason: "the provider has no such key") }
    do {
      return try await known.verify(token)
    } catch {
      throw Refusal(reason: "its signature is wrong, or a claim is missing or malformed")
    }
  }

  /// Checks the claims that all tokens have.
  ///
  /// - Returns: the client that the token was made for.
  private func clientID(checking claims: some ProviderClaims, now: Date) throws -> String {
    guard Self.issuers(of: name).contains(claims.iss.value) else { throw Refusal(reason: "it has another issuer") }
    // A token that is also for another client could be replayed here by that client.
    guard let clientID = claims.aud.clients.first, claims.aud.clients.allSatisfy({ clientIDs.contains($0) }) else {
      throw Refusal(reason: "its audience is not a configured client")
    }
    guard claims.expiry.addingTimeInterval(Self.skew) > now else { throw Refusal(reason: "it has expired") }
    let begin = max(claims.iat.value, claims.nbf?.value ?? claims.iat.value)
    guard begin < now.addingTimeInterval(Self.farFuture) else { throw Refusal(reason: "it is not valid yet") }
    return clientID
  }

  private func identity(of claims: IdentityClaims, clientID: String, nonce: String?) throws -> Identity {
    guard Self.matches(claims.nonce, nonce) else { throw Refusal(reason: "its nonce differs from the given one") }
    guard Identity.isSubject(claims.sub.value) else { throw Refusal(reason: "its subject is not a valid id") }
    return Identity(
      provider: name, subject: claims.sub.value, clientID: clientID,
      email: claims.emailVerified?.value == true ? claims.email.flatMap(Self.address) : nil,
      name: claims.name.flatMap(Self.displayName), issuedAt: claims.iat.value)
  }

  /// Either both have a nonce or neither: a token of another sign-in must not pass because the nonce is left out. Apps
  /// give Apple the nonce's digest, and give us the nonce itself.
  private static func matches(_ claim: String?, _ given: String?) -> Bool {
    guard let claim, let given else { return claim == nil && given == nil }
    let digest = SHA256.hash(data: Data(given.utf8)).map { String(format: "%02x", $0) }.joined()
    return claim.hasSameBytes(as: given) || claim.hasSameBytes(as: digest)
  }

  // A value that cannot be stored counts as absent.
  private static func address(_ text: String) -> EmailAddress? {
    try? Fields.Rule<EmailAddress>.email.read(.string(text))
  }

  private static func displayName(_ text: String) -> String? {
    try? Fields.Rule<String>.line(1...100).read(.string(text))
  }

  /// A part of a token that is not verified yet.
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
  static let invalidNotification = AppError(
    .unauthorized, "invalid-notification", "This notification is not signed by Apple for an app of this server.")
  static let invalidIdentityToken = AppError(
    .unauthorized, "invalid-identity-token", "This identity token is invalid. Sign in with the provider again.")
  static let providerNotConfigured = AppError(
    .notFound, "provider-not-configured", "This server does not support this provider.")
}

/// The configured providers. As a service, this keeps their keys fresh.
public struct IdentityProviders: Service {
  private let all: [IdentityProvider]

  init(_ all: [IdentityProvider]) {
    self.all = all
  }

  /// - Throws: ``AppError`` `provider-not-configured`.
  func named(_ name: IdentityProvider.Name) throws -> IdentityProvider {
    guard let provider = all.first(where: { $0.name == name }) else { throw AppError.providerNotConfigured }
    return provider
  }

  /// Verifies a token with the provider that the token names as its issuer.
  func verify(_ token: IdentityToken, logger: Logger) async throws -> Identity {
    guard case .string(let issuer) = IdentityProvider.part(1, of: token.text)?["iss"],
      let provider = all.first(where: {
        IdentityProvider.issuers(of: $0.name).contains { $0.hasSameBytes(as: issuer) }
      })
    else { throw AppError.invalidIdentityToken }
    return try await provider.verify(token, logger: logger)
  }

  public func run() async throws {
    // A service with nothing to do must not be the first to end.
    guard !all.isEmpty else {
      try? await gracefulShutdown()
      return
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for provider in all { group.addTask { try await provider.keys.run() } }
      try await group.waitForAll()
    }
  }
}

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

/// The unverified token that an app sends after a sign-in with a provider.
struct IdentityToken: Sendable {
  let text: String
  /// The nonce that the app created for this sign-in, if any.
  let nonce: String?
}
