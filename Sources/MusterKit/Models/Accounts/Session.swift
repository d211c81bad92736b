import Foundation

/// One login of the caller.
public struct Session: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  /// The name that the app gave at the login.
  public var device: String?
  public var createdAt: Date
  public var lastUsedAt: Date
  /// Whether this is the caller's own session.
  public var current: Bool

  public init(id: UUID, device: String? = nil, createdAt: Date, lastUsedAt: Date, current: Bool = false) {
    self.id = id
    self.device = device
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
    self.current = current
  }
}
