import Foundation

/// The response to the registration of a device.
public struct RegisteredDevice: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var platform: Platform
  public var environment: PushEnvironment?
  public var topic: String?
  public var name: String?
  /// Whether pushes have keys in place of sentences.
  public var localizes: Bool
  public var createdAt: Date
  /// Whether the device belongs to the caller's session.
  public var current: Bool
  /// The secret of a webhook, if it is new. Store it: it is not shown again.
  public var secret: String?

  public init(
    id: UUID, platform: Platform, environment: PushEnvironment? = nil, topic: String? = nil, name: String? = nil,
    localizes: Bool = false, createdAt: Date, current: Bool = false, secret: String? = nil
  ) {
    self.id = id
    self.platform = platform
    self.environment = environment
    self.topic = topic
    self.name = name
    self.localizes = localizes
    self.createdAt = createdAt
    self.current = current
    self.secret = secret
  }
}
