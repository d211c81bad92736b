import Foundation

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
