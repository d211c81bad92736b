/// The way out of the process: brings one notification to one device.
public protocol PushSender: Sendable {
  /// - Throws: ``DeliveryFailure``, which says what to do about it. After any other error the push is tried again later.
  func send(_ push: Push, to device: Device) async throws
}
