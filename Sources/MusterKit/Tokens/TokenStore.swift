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
