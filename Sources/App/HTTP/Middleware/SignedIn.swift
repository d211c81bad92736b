import HTTPServer
import Postgres

/// Admits only requests with a valid access token whose session has not ended. The responses are for the caller alone.
struct SignedIn: Sendable {
  let accessTokens: AccessTokens
  let endedSessions: EndedSessions

  private static let cacheControl = HTTPField(name: .cacheControl, value: "private, no-cache")

  func admit(_ request: Request, _ context: Context) async throws -> AccessTokens.Caller {
    guard let token = request.bearerToken else { throw AppError.noToken }
    let caller = try await accessTokens.verify(token)
    context.admit(caller)
    try endedSessions.check(caller)
    return caller
  }

  /// Returns the request with its complete body. Throws if the session ends before the body is complete.
  func complete(
    _ request: Request, of caller: AccessTokens.Caller, upTo limit: Int, else refusal: AppError
  ) async throws -> Request {
    guard request.hasBody else { return request }
    var request = request
    // A body can take minutes to arrive, so check the session again. Also check the token: after it expires, the end of
    // its session may be forgotten.
    request.body = RequestBody(try await request.bytes(upTo: limit, else: refusal))
    guard caller.isValid(at: .now()) else { throw AppError.tokenExpired }
    try endedSessions.check(caller)
    return request
  }

  /// Keeps a response from shared caches.
  static func keepingPrivate(_ response: consuming Response) -> Response {
    if !response.headers.contains(.cacheControl) { response.headers.append(cacheControl) }
    return response
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
