/// A device to register. Register at every launch, because providers replace tokens.
public struct DeviceRegistration: Codable, Sendable, Hashable {
  public var platform: Platform
  /// `ios`: the APNs device token in hexadecimal digits. `android`: the FCM registration token. `webhook`: an https URL.
  /// `log`: any name.
  public var token: String
  /// For `ios` only. Default: `production`.
  public var environment: PushEnvironment?
  /// The app's bundle id. For `ios` only.
  public var topic: String?
  /// A name for the user's list of devices.
  public var name: String?
  /// Whether the app has the sentences of all keys. For `ios` and `android` only.
  public var localizes: Bool?
  /// Replaces the secret. For `webhook` only.
  public var rotateSecret: Bool?

  public init(
    platform: Platform, token: String, environment: PushEnvironment? = nil, topic: String? = nil, name: String? = nil,
    localizes: Bool? = nil, rotateSecret: Bool? = nil
  ) {
    self.platform = platform
    self.token = token
    self.environment = environment
    self.topic = topic
    self.name = name
    self.localizes = localizes
    self.rotateSecret = rotateSecret
  }
}
