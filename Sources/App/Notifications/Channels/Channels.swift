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
