import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// Adds the routes of the API to a group of the router.
struct Routes {
  typealias Handler = @Sendable (Request, Context) async throws -> Response

  private let group: any RouterMethods<Context>
  private let dependencies: Dependencies

  init(_ group: any RouterMethods<Context>, _ dependencies: Dependencies) {
    self.group = group
    self.dependencies = dependencies
  }

  /// - Parameters:
  ///   - readsQuery: whether the handler calls ``Request/query(_:)``, which refuses unknown parameters. All other
  ///     handlers have no parameters.
  ///   - limit: the limit that requests of signed-in users count against.
  func get(
    _ path: RouterPath, readsQuery: Bool = false, limit: RateLimit = .reads, use handler: @escaping Handler
  ) {
    add(path, .get, readsQuery, limit, handler)
  }

  /// Who gets the first response to a write with an `Idempotency-Key` again.
  enum Repeats {
    case byUser
    /// For a response with a secret: only the session that has got it, because the end of that session ends the secret.
    case inSession
  }

  func post(
    _ path: RouterPath, readsQuery: Bool = false, limit: RateLimit = .writes, repeats: Repeats = .byUser,
    use handler: @escaping Handler
  ) {
    add(path, .post, readsQuery, limit, handler, repeats: repeats)
  }

  func put(_ path: RouterPath, limit: RateLimit = .writes, use handler: @escaping Handler) {
    add(path, .put, false, limit, handler)
  }

  func patch(_ path: RouterPath, use handler: @escaping Handler) {
    add(path, .patch, false, .writes, handler)
  }

  func delete(
    _ path: RouterPath, readsQuery: Bool = false, limit: RateLimit = .writes, use handler: @escaping Handler
  ) {
    add(path, .delete, readsQuery, limit, handler)
  }

  private func add(
    _ path: RouterPath, _ method: HTTPRequest.Method, _ readsQuery: Bool, _ limit: RateLimit,
    _ handler: @escaping Handler, repeats: Repeats = .byUser
  ) {
    // The writes below `auth` are safe to repeat in ways of their own.
    let takesKey = method != .get && !path.description.hasPrefix("/auth/")
    group.on(path, method: method) { [dependencies] request, context in
      // Routes without a user apply their own limits.
      if context.caller != nil { try dependencies.rateLimits.count(limit, in: context) }
      if !readsQuery, request.uri.query != nil { try request.query { _ in } }
      guard takesKey, let key = try request.idempotencyKey() else { return try await handler(request, context) }
      try dependencies.rateLimits.count(limit.ofRepeatable, in: context)
      var scope = [try context.user.description, method.rawValue, request.uri.path]
      if case .inSession = repeats { scope.append(try context.session.description) }
      var idempotent = IdempotentRequest(
        key, scope: scope, content: try await request.content(), keys: dependencies.refreshTokenKeys)
      if let first = try await idempotent.stored(in: dependencies.database) {
        if let response = try await idempotent.response(first, in: dependencies.database) { return response }
        idempotent.hadNoEffect = true
        idempotent.event = first.event
      }
      var context = context
      context.idempotent = idempotent
      return try await handler(request, context)
    }
  }
}

extension Request {
  /// What a repeated request must have in common with the first one. The body was received before.
  fileprivate func content() async throws -> Data {
    let body = hasBody ? try await bytes(upTo: Picture.maximumLength, else: .bodyTooLarge) : ByteBuffer()
    return Data([uri.query ?? "", headers[.ifMatch] ?? "", ""].joined(separator: "\n").utf8)
      + Data(body.readableBytesView)
  }
}
