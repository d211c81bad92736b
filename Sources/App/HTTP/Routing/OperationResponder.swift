import Foundation
import HTTPServer

/// Does what the document says about an operation, and then calls its handler: admits the caller, counts the request,
/// refuses unknown parameters, and finds the response to an earlier request with the same `Idempotency-Key`.
struct OperationResponder: Sendable {
  private let attributes: Operation.Attributes
  private let rate: RateLimit?
  /// Pages and files ignore unknown parameters: sites that share their URLs may append their own.
  private let refusesQuery: Bool
  private let takesKey: Bool
  /// Nil if the operation needs no token.
  private let signedIn: SignedIn?
  private let largeBodies: LargeBodies?
  private let dependencies: Dependencies
  private let handler: Handler

  init(_ operation: Operation, _ dependencies: Dependencies, _ handler: @escaping Handler) {
    attributes = operation.attributes
    // Refreshes count for the session of the refresh token, which only the handler knows.
    rate = attributes.rate == .refreshes ? nil : attributes.rate
    // Handlers read the parameters that they know, and refuse others.
    refusesQuery = attributes.path.hasPrefix("/api/") && attributes.query.isEmpty
    let needsToken = attributes.access == .signedIn
    // The key of a registration is its handler's.
    takesKey = needsToken && attributes.takesKey
    signedIn =
      needsToken
      ? SignedIn(accessTokens: dependencies.accessTokens, endedSessions: dependencies.endedSessions) : nil
    largeBodies = LargeBodies(operation)
    self.dependencies = dependencies
    self.handler = handler
  }

  @Sendable func respond(to request: Request, context: Context) async throws -> Response {
    guard let signedIn else { return try await handle(request, context) }
    let caller = try await signedIn.admit(request, context)
    guard let largeBodies, largeBodies.mayBe(in: request) else {
      let request = try await signedIn.complete(
        request, of: caller, upTo: Request.maximumBody, else: .bodyTooLarge)
      return SignedIn.keepingPrivate(try await handle(request, context))
    }
    return try await largeBodies.hold(for: caller.user) {
      let request = try await signedIn.complete(
        request, of: caller, upTo: largeBodies.maximum, else: largeBodies.refusals.tooLarge)
      return SignedIn.keepingPrivate(try await handle(request, context))
    }
  }

  private func handle(_ request: Request, _ context: Context) async throws -> Response {
    if let rate { try dependencies.rateLimits.count(rate, in: context) }
    if refusesQuery, request.uri.query != nil { try request.query { _ in } }
    guard takesKey, let key = try request.idempotencyKey() else { return try await handler(request, context) }
    if let rate { try dependencies.rateLimits.count(rate.ofRepeatable, in: context) }
    var scope = [try context.user.description, attributes.method.rawValue, request.uri.path]
    if attributes.repeats == .inSession { scope.append(try context.session.description) }
    var idempotent = IdempotentRequest(
      key, scope: scope, content: try await request.content(upTo: attributes.maximumBody),
      keys: dependencies.refreshTokenKeys)
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

extension Request {
  /// The parts in which a repeated request must equal the first one. The body was received before.
  fileprivate func content(upTo limit: Int) async throws -> Data {
    let body = hasBody ? try await bytes(upTo: limit, else: .bodyTooLarge) : ByteBuffer()
    return Data([uri.query ?? "", headers[.ifMatch] ?? "", ""].joined(separator: "\n").utf8)
      + Data(body.readableBytesView)
  }
}
