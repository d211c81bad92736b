import Hummingbird

/// The response to a user who has just logged in: the account and both tokens.
struct SignedInResponse: Sendable {
  private let accessTokens: AccessTokens
  private let keys: SigningKeys

  init(_ dependencies: Dependencies) {
    accessTokens = dependencies.accessTokens
    keys = dependencies.refreshTokenKeys
  }

  /// `user` is read in the transaction of the change: an error after the commit would say that nothing was changed.
  ///
  /// - Parameter isNew: whether this request created the account; nil if the client knows.
  func callAsFunction(
    _ user: User?, _ pass: Session.Pass, status: HTTPResponse.Status = .ok, isNew: Bool? = nil
  ) async throws -> Response {
    guard let user else { throw AppError.sessionEnded }
    let accessToken = try await accessTokens.sign(
      user: user.id, session: pass.token.session, epoch: pass.epoch)
    let tokens = TokensJSON(
      user: user, accessToken: accessToken, refreshToken: try pass.token.signed(with: keys),
      expiresIn: accessTokens.lifetime, isNew: isNew)
    var response = Response.json(tokens, status: status)
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

private struct TokensJSON: JSONWritable {
  let user: User
  let accessToken: String
  let refreshToken: String
  let expiresIn: Int
  let isNew: Bool?

  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("user", user)
      $0.member("accessToken", accessToken)
      $0.member("refreshToken", refreshToken)
      $0.member("tokenType", "Bearer")
      $0.member("expiresIn", expiresIn)
      if let isNew { $0.member("isNew", isNew) }
    }
  }
}
