import Foundation
import MusterKit

/// A store that fails when it should.
final class UnreliableTokenStore: TokenStore {
  enum Failure: Sendable {
    case load, save
    /// The tokens are saved, but the caller does not learn it.
    case afterSave
  }

  struct Unavailable: Error {}

  let failures = Locked<Set<Failure>>([])
  /// Called after tokens were read, before they are removed, and after that: what other tasks do at that moment.
  let afterLoad = Locked<(@Sendable () -> Void)?>(nil)
  let beforeClear = Locked<(@Sendable () -> Void)?>(nil)
  let afterClear = Locked<(@Sendable () -> Void)?>(nil)
  private let store: MemoryTokenStore

  init(_ tokens: StoredTokens?) { store = MemoryTokenStore(tokens) }

  func load() throws -> StoredTokens? {
    if failures.value.contains(.load) { throw Unavailable() }
    let tokens = store.load()
    afterLoad.value?()
    return tokens
  }

  func save(_ tokens: StoredTokens) throws {
    if failures.value.contains(.save) { throw Unavailable() }
    store.save(tokens)
    if failures.value.contains(.afterSave) { throw Unavailable() }
  }

  func clear() throws {
    beforeClear.value?()
    store.clear()
    afterClear.value?()
  }

  func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await store.withRefreshLock(body)
  }
}
