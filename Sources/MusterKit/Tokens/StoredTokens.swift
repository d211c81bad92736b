import Foundation

/// The tokens of the user who is logged in on this device.
public struct StoredTokens: Codable, Sendable, Hashable {
  /// For requests. Valid until `accessExpiresAt`.
  public var accessToken: String
  /// Each refresh replaces it.
  public var refreshToken: String
  /// By the device's clock.
  public var accessExpiresAt: Date
  /// The user's id.
  public var user: User.ID

  public init(accessToken: String, refreshToken: String, accessExpiresAt: Date, user: User.ID) {
    self.accessToken = accessToken
    self.refreshToken = refreshToken
    self.accessExpiresAt = accessExpiresAt
    self.user = user
  }
}
