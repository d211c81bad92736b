/// Sends a notification to a device.
public protocol PushSender: Sendable {
  /// - Throws: ``DeliveryFailure``, which says how to handle it. After any other error the push is retried later.
  func send(_ push: Push, to device: Device) async throws
}
