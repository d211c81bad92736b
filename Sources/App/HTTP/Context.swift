import Foundation
import HTTPServer
import Logging
import Postgres
import Synchronization

/// A request's facts besides its head and body.
struct Context: Sendable {
  /// The parameters in the path.
  var parameters = Parameters()
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
  let peer: Peer?
  var trustedProxies = TrustedProxies()
  var forwardedFor: [String] = []
  /// Set for a write with an `Idempotency-Key`.
  var idempotent: IdempotentRequest?

  /// - Parameter peer: nil for a request of this process to itself.
  init(peer: Peer? = nil, logger: Logger) {
    self.peer = peer
    unnamedLogger = logger
  }

  /// The client's address: the peer of the connection, or the address that trusted proxies report.
  var address: String {
    // A closed connection has no address.
    guard let address = peer?.address else { return "unknown" }
    return trustedProxies.client(behind: address, forwardedFor: forwardedFor).description
  }

  var caller: AccessTokens.Caller? { admission.state.withLock { $0.caller } }

  func admit(_ caller: AccessTokens.Caller) {
    admission.state.withLock { $0.caller = caller }
  }

  /// The user and the session that a request without an access token turned out to be about, for its log line.
  var subject: (user: User.ID?, session: Session.ID?) { admission.state.withLock { $0.subject } }

  func concerns(_ user: User.ID?, _ session: Session.ID? = nil) {
    admission.state.withLock { $0.subject = (user ?? $0.subject.user, session ?? $0.subject.session) }
  }

  /// The rate limit that this request counted against.
  var rateLimit: RateLimit.State? { admission.state.withLock { $0.rateLimit } }

  func note(_ rateLimit: RateLimit.State) {
    admission.state.withLock { $0.rateLimit = rateLimit }
  }

  /// Adds the request's id to each line. Made on demand, because most requests log nothing.
  var logger: Logger {
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
  struct State {
    var caller: AccessTokens.Caller?
    var subject: (user: User.ID?, session: Session.ID?) = (nil, nil)
    var rateLimit: RateLimit.State?
  }

  let state = Mutex(State())
}

extension AppError {
  static let bodyTooLarge = AppError(
    .tooLarge, "body-too-large", "The body must be at most \(Request.maximumBody >> 10) KiB.")
  static let notJSON = AppError(
    .unsupportedMediaType, "unsupported-media-type", "The body must be JSON: Content-Type: application/json.")
}
