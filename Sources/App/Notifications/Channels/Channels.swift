import Foundation
import Logging
import NIOHTTP1
import Postgres

/// Sends each notification through the channel of the device's platform.
public struct Channels: PushSender {
  private let apns: APNsSender?
  private let fcm: FCMSender?
  private let webhooks: WebhookSender
  private let log: LogSender

  /// - Parameter printsPayloads: whether notifications to devices of the platform `log` are logged with their payloads.
  ///   For development only.
  public init(_ dependencies: Dependencies, printsPayloads: Bool = false) {
    apns = dependencies.apns.map { APNsSender($0, client: dependencies.httpClient) }
    fcm = dependencies.fcm.map { FCMSender($0, client: dependencies.httpClient) }
    webhooks = WebhookSender(
      keys: dependencies.refreshTokenKeys,
      clients: WebhookClients(dependencies.outgoing, allowsPrivate: dependencies.allowsPrivateWebhooks))
    log = LogSender(logger: dependencies.logger, printsPayloads: printsPayloads)
  }

  /// A sentence for each platform whose devices cannot be reached with this configuration.
  public var gaps: [String] {
    var gaps: [String] = []
    if apns == nil {
      gaps.append("\(Self.noAPNs): iOS deliveries wait in the queue and become dead letters after a day")
    }
    if fcm == nil {
      gaps.append("\(Self.noFCM): Android deliveries wait in the queue and become dead letters after a day")
    }
    return gaps
  }

  private static let noAPNs = "MUSTER_APNS_PRIVATE_KEY is not set"
  private static let noFCM = "MUSTER_FCM_SERVICE_ACCOUNT is not set"

  public func send(_ push: Push, to device: Device) async throws {
    switch device.platform {
    case .ios:
      guard let apns else { throw DeliveryFailure(description: Self.noAPNs) }
      try await apns.send(push, to: device)
    case .android:
      guard let fcm else { throw DeliveryFailure(description: Self.noFCM) }
      try await fcm.send(push, to: device)
    case .webhook:
      try await webhooks.send(push, to: device)
    case .log:
      try await log.send(push, to: device)
    }
  }
}

/// Sends a notification to a device.
public protocol PushSender: Sendable {
  /// - Throws: ``DeliveryFailure``, which says how to handle it. After any other error the push is retried later.
  func send(_ push: Push, to device: Device) async throws
}

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

extension DeliveryFailure.Remedy {
  /// No receiver can delay a notification for longer than this, in seconds.
  private static let longestPause = 3600

  /// Another attempt, no earlier than the `Retry-After` header asks for, in seconds or as a date.
  static func later(_ headers: HTTPHeaders, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    .later(seconds: pause(headers, now: now))
  }

  private static func pause(_ headers: HTTPHeaders, now: Timestamp) -> Int? {
    guard let text = headers.first(name: "Retry-After")?.trimmingCharacters(in: .whitespaces) else { return nil }
    var seconds = Int(text)
    if let date = Timestamp(httpDate: text) { seconds = Int((date.microseconds - now.microseconds) / 1_000_000) }
    guard let seconds, seconds > 0 else { return nil }
    return min(seconds, longestPause)
  }

  /// Another attempt after a response of Apple or Google. Without `Retry-After`, Google asks for 60 seconds after 429,
  /// and for at least 10 after an error of its own. Apple names no times, so the same ones do for it.
  static func later(_ response: OutgoingResponse, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    let minimum: Int? =
      switch response.status {
      case 429: 60
      case 500...: 10
      default: nil
      }
    return .later(seconds: pause(response.headers, now: now) ?? minimum)
  }
}
