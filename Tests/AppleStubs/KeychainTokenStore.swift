import Foundation
import MusterKit

/// As MusterKit declares it where there is a keychain.
struct KeychainTokenStore: TokenStore {
  init(service: String, accessGroup: String? = nil, lockFolder: URL) {}

  func load() throws -> StoredTokens? { nil }
  func save(_ tokens: StoredTokens) throws {}
  func clear() throws {}
  func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await body()
  }
}
