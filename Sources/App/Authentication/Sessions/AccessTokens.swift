import Foundation
import JWTKit
import Postgres
import Synchronization

/// Signs and verifies access tokens: JWTs with HMAC-SHA256 that name the user and the session.
public final class AccessTokens: Sendable {
  static let issuer = "muster"
  static let audience = "muster"
  /// How far ahead a token may begin, in seconds, because processes' clocks differ. Its end has no leeway. Ended sessions
  /// are known for as much longer.
  static let skew = 600
  /// A verified token is cached until it expires: verification costs more than the rest of a hot request.
  private static let maximumKnown = 50_000

  public struct Caller: Sendable, Equatable {
    public let user: User.ID
    public let session: Session.ID
    let epoch: Int
    let expires: Timestamp

    func isValid(at now: Timestamp) -> Bool { expires > now }
  }

  let lifetime: Int
  private let keys: JWTKeyCollection
  private let signingKid: JWKIdentifier
  private let kids: Set<String>
  private let known = Mutex<[String: Caller]>([:])

  /// - Parameter lifetime: in seconds.
  public init(keys: SigningKeys, lifetime: Int) async {
    self.lifetime = lifetime
    signingKid = JWKIdentifier(string: keys.signing.kid)
    kids = Set(keys.all.map(\.kid))
    self.keys = JWTKeyCollection()
    for (kid, key) in keys.all {
      // Each key serves one algorithm; a token that names another is refused.
      await self.keys.add(hmac: HMACKey(key: key), digestAlgorithm: .sha256, kid: JWKIdentifier(string: kid))
    }
  }

  /// - Parameter epoch: the session's; 0 is the first.
  func sign(
    user: User.ID, session: Session.ID, epoch: Int = 0, now: Timestamp = .now()
  ) async throws -> String {
    // Whole seconds, as most libraries expect them.
    let now = Timestamp(microseconds: now.microseconds / 1_000_000 * 1_000_000)
    let claims = AccessClaims(
      iss: IssuerClaim(value: Self.issuer), aud: AudienceClaim(value: Self.audience),
      sub: SubjectClaim(value: user.description), sid: session.description, epoch: epoch,
      iat: IssuedAtClaim(value: now.date), exp: ExpirationClaim(value: now.adding(seconds: lifetime).date),
      jti: IDClaim(value: UUID().uuidString.lowercased()))
    return try await keys.sign(claims, kid: signingKid, header: ["typ": "at+jwt"])
  }

  /// - Throws: ``AppError`` with the slug `token-expired` (refresh) or `invalid-token`.
  func verify(_ token: String, now: Timestamp = .now()) async throws -> Caller {
    // Other text could take long to hash, and all other requests would wait for the lock.
    guard token.isASCII else { throw AppError.invalidToken }
    if let caller = known.withLock({ $0[token] }) {
      guard caller.isValid(at: now) else {
        known.withLock { $0[token] = nil }
        throw AppError.tokenExpired
      }
      return caller
    }
    let caller = try await verifySignature(token, now: now)
    guard caller.isValid(at: now) else { throw AppError.tokenExpired }
    known.withLock { known in
      if known.count >= Self.maximumKnown { known.removeAll(keepingCapacity: true) }
      known[token] = caller
    }
    return caller
  }

  private func verifySignature(_ token: String, now: Timestamp) async throws -> Caller {
    // Without a useful header, the library would accept any of its keys.
    guard let head = Data(base64URL: String(token.prefix { $0 != "." })),
      // The library ignores all other members, so none are allowed.
      case .object(let header) = try? JSON(parsing: head), header.count == 3,
      header["alg"] == .string("HS256"), header["typ"] == .string("at+jwt"),
      case .string(let kid) = header["kid"], kid.isASCII, kids.contains(kid)
    else { throw AppError.invalidToken }
    let claims: AccessClaims
    do {
      claims = try await keys.verify(token)
    } catch {
      throw AppError.invalidToken
    }
    guard let user = User.ID(claims.sub.value), let session = Session.ID(claims.sid),
      Timestamp(claims.iat.value) <= now.adding(seconds: Self.skew)
    else { throw AppError.invalidToken }
    // A token from a time of longer lifetimes must also expire before its ended session is forgotten.
    let expires = min(Timestamp(claims.exp.value), Timestamp(claims.iat.value).adding(seconds: lifetime))
    return Caller(user: user, session: session, epoch: claims.epoch, expires: expires)
  }
}

extension AppError {
  static let noToken = AppError(
    .unauthorized, "no-token", "This request needs an access token: Authorization: Bearer <token>.")
  static let invalidToken = AppError(.unauthorized, "invalid-token", "This access token is invalid. Log in again.")
  static let tokenExpired = AppError(.unauthorized, "token-expired", "This access token has expired: refresh it.")
}

private struct AccessClaims: JWTPayload, Equatable {
  let iss: IssuerClaim
  let aud: AudienceClaim
  let sub: SubjectClaim
  let sid: String
  /// The epoch in which the session started: see ``Session/endEveryones(in:)``.
  let epoch: Int
  let iat: IssuedAtClaim
  let exp: ExpirationClaim
  let jti: IDClaim

  /// ``AccessTokens`` checks the dates.
  func verify(using algorithm: some JWTAlgorithm) throws {
    try aud.verifyIntendedAudience(includes: AccessTokens.audience)
    guard iss.value == AccessTokens.issuer else {
      throw JWTError.claimVerificationFailure(failedClaim: iss, reason: "another issuer")
    }
  }
}
