import Logging
import Postgres

/// The way out of the process: brings one notification to one device.
public protocol PushSender: Sendable {
  /// - Throws: ``DeliveryFailure``, which says what to do about it; any other error passes by itself.
  func send(_ push: Push, to device: Device) async throws
}

/// A notification on its way to a device.
public struct Push: Sendable {
  /// The same at every attempt, in the inbox and in the stream.
  public let id: String
  public let type: String
  /// What it is about: what is shown of the same subject before may be replaced.
  public let subject: String
  public let recipient: String
  /// JSON: `type`, `message` and ids.
  public let payload: String
  public let createdAt: Timestamp
}

/// Why something could not be delivered, for the log: without any token or address.
public struct DeliveryFailure: Error, CustomStringConvertible {
  /// What helps.
  public enum Remedy: Sendable, Equatable {
    /// Another attempt, not before this many seconds if the other side has said so.
    case later(seconds: Int?)
    /// Nothing: the other side will never take it.
    case none
    /// The device is no more: to forget it.
    case forgettingTheDevice
  }

  public let description: String
  public let remedy: Remedy

  public init(description: String, remedy: Remedy = .later(seconds: nil)) {
    self.description = description
    self.remedy = remedy
  }
}

/// Writes notifications to the log: the channel for development.
public struct LogSender: PushSender {
  private let logger: Logger
  private let printsPayloads: Bool

  /// - Parameter printsPayloads: `false` where the log is not the developer's alone: what people are told is not logged.
  public init(logger: Logger, printsPayloads: Bool = true) {
    self.logger = logger
    self.printsPayloads = printsPayloads
  }

  public func send(_ push: Push, to device: Device) async throws {
    var metadata: Logger.Metadata = ["id": "\(push.id)", "type": "\(push.type)", "to": "\(push.recipient)"]
    if printsPayloads { metadata["payload"] = "\(push.payload)" }
    logger.info("notification", metadata: metadata)
  }
}
