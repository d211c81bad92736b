import Foundation

/// The response to a login or a refresh.
public struct Tokens: Codable, Sendable, Hashable {
  public var user: User
  public var accessToken: String
  /// Opaque. Each refresh replaces it.
  public var refreshToken: String
  public var tokenType: String
  /// The lifetime of the access token in seconds.
  public var expiresIn: Int
  /// Whether this login created the account; only after a login with Apple or Google.
  public var isNew: Bool?

  public init(
    user: User, accessToken: String, refreshToken: String, tokenType: String = "Bearer", expiresIn: Int,
    isNew: Bool? = nil
  ) {
    self.user = user
    self.accessToken = accessToken
    self.refreshToken = refreshToken
    self.tokenType = tokenType
    self.expiresIn = expiresIn
    self.isNew = isNew
  }
}
