import JWTKit

struct AccessClaims: JWTPayload, Equatable {
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
