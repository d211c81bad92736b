import Foundation

/// Where tokens are kept between launches. Several processes may share a store, such as an app and its extensions.
///
/// An error means that the store is not available now. It never means that the user is logged out.
public protocol TokenStore: Sendable {
  /// The tokens that were saved last; nil if there are none. It is called while the client holds a lock: it must not
  /// wait for ``withRefreshLock(_:)``, and must not call the client.
  func load() throws -> StoredTokens?

  /// Replaces the tokens. When this returns, they outlive the process. If it throws, the earlier ones are still there.
  func save(_ tokens: StoredTokens) throws

  func clear() throws

  /// Runs `body`, which sends one request at most, while no other process and no other task runs one.
  func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R
}

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

/// Keeps tokens until the process ends.
public final class MemoryTokenStore: TokenStore {
  private let lock = AsyncLock()
  private let tokens: Guarded<StoredTokens?>

  public init(_ tokens: StoredTokens? = nil) { self.tokens = Guarded(tokens) }

  public func load() -> StoredTokens? { tokens.withLock { $0 } }

  public func save(_ tokens: StoredTokens) { self.tokens.withLock { $0 = tokens } }

  public func clear() { tokens.withLock { $0 = nil } }

  public func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await lock.withLock(body)
  }
}
