import Foundation

/// A device that gets notifications.
public struct Device: Codable, Sendable, Hashable, Identifiable {
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

  public init(
    id: UUID, platform: Platform, environment: PushEnvironment? = nil, topic: String? = nil, name: String? = nil,
    localizes: Bool = false, createdAt: Date, current: Bool = false
  ) {
    self.id = id
    self.platform = platform
    self.environment = environment
    self.topic = topic
    self.name = name
    self.localizes = localizes
    self.createdAt = createdAt
    self.current = current
  }
}
