import Hummingbird

/// What a user gets who has proven who they are: the account and both tokens.
struct SignedInResponse: Sendable {
  private let accessTokens: AccessTokens
  private let keys: SigningKeys

  init(_ dependencies: Dependencies) {
    accessTokens = dependencies.accessTokens
    keys = dependencies.refreshTokenKeys
  }

  /// What was changed is read in the same transaction: an error afterwards would say that nothing was.
  ///
  /// - Parameter isNew: whether the account was made just now, where the client cannot know.
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
