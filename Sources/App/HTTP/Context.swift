import Synchronization
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Postgres

/// What is known of a request besides itself.
public struct Context: RequestContext {
  public var coreContext: CoreRequestContextStorage
  /// Sent back as `X-Request-Id`, and in every problem and log line.
  var requestID = ""
  private let unnamedLogger: Logger
  /// Shared by the copies of this context, so that the outermost middleware knows who was let in.
  private let admission = Admission()
  /// What ``address`` is made of.
  let channel: any Channel
  var trustedProxies = TrustedProxies()
  var forwardedFor: [String] = []

  public init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    unnamedLogger = source.logger
  }

  var caller: AccessTokens.Caller? { admission.caller.withLock { $0 } }

  func admit(_ caller: AccessTokens.Caller) {
    admission.caller.withLock { $0 = caller }
  }

  /// Names the request in its lines. Made when it is asked for: most requests say nothing.
  public var logger: Logger {
    var logger = unnamedLogger
    logger[metadataKey: "request"] = "\(requestID)"
    return logger
  }

  /// The signed-in user: on routes behind ``SignedIn``.
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

  /// An id in the path. One that is no UUID names nothing, like any unknown one.
  func id<Thing>(_ name: String, else error: AppError) throws -> Identifier<Thing> {
    guard let text = parameters.get(name), let id = Identifier<Thing>(text) else { throw error }
    return id
  }
}

/// The caller that a request was admitted for.
private final class Admission: Sendable {
  let caller = Mutex<AccessTokens.Caller?>(nil)
}

extension AppError {
  static let bodyTooLarge = AppError(.tooLarge, "body-too-large", "A body has at most 64 KiB.")
  static let notJSON = AppError(
    .unsupportedMediaType, "unsupported-media-type", "The body must be JSON: Content-Type: application/json.")
}
