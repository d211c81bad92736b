import Foundation
import MusterClient

/// A store that fails when it should.
final class UnreliableTokenStore: TokenStore {
  enum Failure: Sendable {
    case load, save
    /// The tokens are saved, but the caller does not learn it.
    case afterSave
  }

  struct Unavailable: Error {}

  let failures = Locked<Set<Failure>>([])
  private let store: MemoryTokenStore

  init(_ tokens: StoredTokens?) { store = MemoryTokenStore(tokens) }

  func load() throws -> StoredTokens? {
    if failures.value.contains(.load) { throw Unavailable() }
    return store.load()
  }

  func save(_ tokens: StoredTokens) throws {
    if failures.value.contains(.save) { throw Unavailable() }
    store.save(tokens)
    if failures.value.contains(.afterSave) { throw Unavailable() }
  }

  func clear() throws { store.clear() }

  func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await store.withRefreshLock(body)
  }
}
