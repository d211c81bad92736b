import Logging
import Postgres

/// The way out of the process: brings one notification to its recipient's device.
public protocol PushSender: Sendable {
  /// - Throws: any error; the notification is then tried again later.
  func send(_ push: Push) async throws
}

/// A notification on its way to a device.
public struct Push: Sendable {
  /// The same at every attempt.
  public let id: String
  public let type: String
  public let recipient: String
  /// JSON: `type`, `message` and ids.
  public let payload: String
}

/// Writes notifications to the log: the channel for development.
public struct LogSender: PushSender {
  private let logger: Logger

  public init(logger: Logger) {
    self.logger = logger
  }

  public func send(_ push: Push) async throws {
    logger.info(
      "notification",
      metadata: ["id": "\(push.id)", "type": "\(push.type)", "to": "\(push.recipient)", "payload": "\(push.payload)"])
  }
}
