import Foundation
import MusterKit
import Observation

/// Tells the service where to send this phone's notifications.
@MainActor @Observable
final class PushRegistration {
  #if DEBUG
    private static let environment = PushEnvironment.sandbox
  #else
    /// TestFlight and the App Store.
    private static let environment = PushEnvironment.production
  #endif
  private(set) var isRegistered = false
  private var token: Data?
  private let client: MusterClient

  init(client: MusterClient) { self.client = client }

  /// iOS hands over the device's token at every launch. The same token again changes nothing.
  func register(_ token: Data) async {
    self.token = token
    await registerAgain()
  }

  /// Call this after a login: a device belongs to the session that registered it.
  func registerAgain() async {
    guard let token, client.userID != nil else { return }
    let registration = DeviceRegistration(
      platform: .ios, token: token.map { String(format: "%02x", $0) }.joined(),
      environment: Self.environment, topic: Bundle.main.bundleIdentifier)
    // Without a network, the next launch registers.
    isRegistered = (try? await client.devices.register(registration)) != nil
  }
}
