/// Counts the deliveries of another sender, by platform.
struct MeasuredSender: PushSender {
  private let sender: any PushSender
  private let channels: [Device.Platform: DeliveryCounters]

  init(_ sender: any PushSender, in metrics: MetricsRegistry) {
    self.sender = sender
    channels = Dictionary(
      uniqueKeysWithValues: Device.Platform.allCases.map { ($0, DeliveryCounters($0.rawValue, in: metrics)) })
  }

  func send(_ push: Push, to device: Device) async throws {
    guard let deliveries = channels[device.platform] else { return try await sender.send(push, to: device) }
    try await deliveries.attempt { try await sender.send(push, to: device) }
  }
}
