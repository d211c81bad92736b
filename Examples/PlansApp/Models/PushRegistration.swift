import Foundation
import MusterKit
import Observation

/// Tells the service where to send this phone's notifications.
@MainActor @Observable
final class PushRegistration {
  /// Xcode's builds get pushes from Apple's sandbox; TestFlight and the App Store from production.
  #if DEBUG
    private static let environment = PushEnvironment.sandbox
  #else
    private static let environment = PushEnvironment.production
  #endif

  /// Whether the service knows this phone's token.
  private(set) var isRegistered = false
  private var token: Data?
  private let client: MusterClient

  init(client: MusterClient) { self.client = client }

  /// Call this each time iOS hands over the device's token: at every launch. The same token again changes nothing.
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
