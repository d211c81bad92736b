import Hummingbird

extension Dependencies {
  /// The response to a user who has just logged in: the account and both tokens.
  ///
  /// - Parameters:
  ///   - user: read in the transaction of the change. An error after the commit would say that nothing was changed.
  ///   - isNew: whether this request created the account; nil if the client knows.
  func signedIn(
    _ user: User?, _ pass: Session.Pass, status: HTTPResponse.Status = .ok, isNew: Bool? = nil
  ) async throws -> Response {
    guard let user else { throw AppError.sessionEnded }
    let accessToken = try await accessTokens.sign(user: user.id, session: pass.token.session, epoch: pass.epoch)
    let tokens = SignedInResponse(
      user: user, accessToken: accessToken, refreshToken: try pass.token.signed(with: configuration.refreshTokenKeys),
      expiresIn: accessTokens.lifetime, isNew: isNew)
    var response = Response.json(tokens, status: status)
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

private struct SignedInResponse: JSONWritable {
  let user: User
  let accessToken: String
  let refreshToken: String
  let expiresIn: Int
  let isNew: Bool?

  func write(to json: inout JSONWriter) {
    json.tokens(user: user, accessToken: accessToken, refreshToken: refreshToken, expiresIn: expiresIn, isNew: isNew)
  }
}
