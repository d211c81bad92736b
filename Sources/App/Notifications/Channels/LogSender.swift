import Logging

/// Writes notifications to the log, for development.
public struct LogSender: PushSender {
  private let logger: Logger
  private let printsPayloads: Bool

  /// - Parameter printsPayloads: `false` if others can read the log: payloads are then left out.
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
