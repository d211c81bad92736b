import Synchronization
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Postgres

public struct Context: RequestContext {
  public var coreContext: CoreRequestContextStorage
  /// Nil if the path or its method does not exist.
  var endpoint: Endpoint?
  /// Sent back as `X-Request-Id`, and part of every problem and log line.
  var requestID = ""
  /// Part of every log line, if the client has sent one.
  var trace: Trace?
  private let unnamedLogger: Logger
  /// Shared by the copies of this context, so that the outermost middleware knows the caller.
  private let admission = Admission()
  /// ``address`` is computed from this and the next two properties. Nil for a request without a connection.
  let channel: (any Channel)?
  var trustedProxies = TrustedProxies()
  var forwardedFor: [String] = []
  /// Set for a write with an `Idempotency-Key`.
  var idempotent: IdempotentRequest?

  public init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    unnamedLogger = source.logger
  }

  /// For a request of this process to itself.
  init(logger: Logger) {
    coreContext = CoreRequestContextStorage(source: WithoutConnection(logger: logger))
    channel = nil
    unnamedLogger = logger
  }

  private struct WithoutConnection: RequestContextSource {
    let logger: Logger
  }

  var caller: AccessTokens.Caller? { admission.state.withLock { $0.caller } }

  func admit(_ caller: AccessTokens.Caller) {
    admission.state.withLock { $0.caller = caller }
  }

  /// The rate limit that this request counted against.
  var rateLimit: RateLimit.State? { admission.state.withLock { $0.rateLimit } }

  func note(_ rateLimit: RateLimit.State) {
    admission.state.withLock { $0.rateLimit = rateLimit }
  }

  /// Adds the request's id to each line. Made on demand, because most requests log nothing.
  public var logger: Logger {
    var logger = unnamedLogger
    logger[metadataKey: "request"] = "\(requestID)"
    if let trace { logger[metadataKey: "trace"] = "\(trace.id)" }
    return logger
  }

  /// The signed-in user, on routes behind ``SignedIn``.
  var user: User.ID {
    get throws {
      guard let caller else { throw AppError.noToken }
      return caller.user
    }
  }

  /// The session that the access token belongs to.
  var session: Session.ID {
    get throws {
      guard let caller else { throw AppError.noToken }
      return caller.session
    }
  }

  /// An id in the path. An id that is not a UUID is treated like an unknown one.
  func id<Thing>(_ name: String, else error: AppError) throws -> Identifier<Thing> {
    guard let text = parameters.get(name), let id = Identifier<Thing>(text) else { throw error }
    return id
  }
}

/// The facts about a request that middleware finds.
private final class Admission: Sendable {
  let state = Mutex((caller: AccessTokens.Caller?.none, rateLimit: RateLimit.State?.none))
}

extension AppError {
  static let bodyTooLarge = AppError(
    .tooLarge, "body-too-large", "The body must be at most \(Request.maximumBody >> 10) KiB.")
  static let notJSON = AppError(
    .unsupportedMediaType, "unsupported-media-type", "The body must be JSON: Content-Type: application/json.")
}
