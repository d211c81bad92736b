import Postgres
import Hummingbird
import HummingbirdCore
import NIOCore

/// Lets only requests pass with a valid access token of a session that has not ended.
struct SignedIn: RouterMiddleware {
  let accessTokens: AccessTokens
  let endedSessions: EndedSessions
  /// Where a PUT brings a picture.
  var uploads: Uploads?

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let token = request.bearerToken else { throw AppError.noToken }
    let caller = try await accessTokens.verify(token)
    context.admit(caller)
    try endedSessions.check(caller)
    guard let uploads, request.method == .put else {
      return try await next(
        try await whole(request, of: caller, upTo: Request.maximumBody, else: .bodyTooLarge), context)
    }
    return try await uploads.hold(for: caller.user) {
      try await next(
        try await whole(request, of: caller, upTo: Picture.maximumLength, else: .pictureTooLarge), context)
    }
  }

  /// The request once its body is there, if the session still goes on by then.
  private func whole(
    _ request: Request, of caller: AccessTokens.Caller, upTo limit: Int, else refusal: AppError
  ) async throws -> Request {
    guard request.hasBody else { return request }
    var request = request
    // It may trickle in for minutes: a session that ends meanwhile does nothing more, nor does a token that expires,
    // whose session's end may be forgotten.
    request.body = RequestBody(buffer: try await request.bytes(upTo: limit, else: refusal))
    guard caller.isValid(at: .now()) else { throw AppError.tokenExpired }
    try endedSessions.check(caller)
    return request
  }
}
