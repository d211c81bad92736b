import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import Postgres

/// Admits only requests with a valid access token whose session has not ended. The responses are for the caller alone.
struct SignedIn: RouterMiddleware {
  let accessTokens: AccessTokens
  let endedSessions: EndedSessions
  /// Set for routes where a PUT uploads a picture.
  var uploads: Uploads?
  /// Set for validations.
  var largeBodies: LargeBodies?

  private static let cacheControl = HTTPField(name: .cacheControl, value: "private, no-cache")

  func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let token = request.bearerToken else { throw AppError.noToken }
    let caller = try await accessTokens.verify(token)
    context.admit(caller)
    try endedSessions.check(caller)
    var response = try await respond(to: request, of: caller, context, next)
    if !response.headers.contains(.cacheControl) { response.headers.append(Self.cacheControl) }
    return response
  }

  private func respond(
    to request: Request, of caller: AccessTokens.Caller, _ context: Context,
    _ next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    if let largeBodies, LargeBodies.may(request) {
      return try await largeBodies.hold(for: caller.user) {
        try await next(
          try await complete(request, of: caller, upTo: LargeBodies.maximumLength, else: .claimsTooLarge), context)
      }
    }
    guard let uploads, request.method == .put else {
      return try await next(
        try await complete(request, of: caller, upTo: Request.maximumBody, else: .bodyTooLarge), context)
    }
    return try await uploads.hold(for: caller.user) {
      try await next(
        try await complete(request, of: caller, upTo: Picture.maximumLength, else: .pictureTooLarge), context)
    }
  }

  /// Returns the request with its complete body. Throws if the session ends before the body is complete.
  private func complete(
    _ request: Request, of caller: AccessTokens.Caller, upTo limit: Int, else refusal: AppError
  ) async throws -> Request {
    guard request.hasBody else { return request }
    var request = request
    // A body can take minutes to arrive, so check the session again. Also check the token: after it expires, the end of
    // its session may be forgotten.
    request.body = RequestBody(buffer: try await request.bytes(upTo: limit, else: refusal))
    guard caller.isValid(at: .now()) else { throw AppError.tokenExpired }
    try endedSessions.check(caller)
    return request
  }
}

extension Dependencies {
  /// The user whose session sends a request to a route that is open to everyone. Nil without a valid access token: the
  /// request is then anonymous.
  func sessionUser(of request: Request) async -> User.ID? {
    guard let token = request.bearerToken else { return nil }
    do {
      let caller = try await accessTokens.verify(token)
      try endedSessions.check(caller)
      return caller.user
    } catch {
      return nil
    }
  }
}
