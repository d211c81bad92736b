import Foundation

final class Credentials: Sendable {
  private let store: any TokenStore

  init(_ store: any TokenStore) { self.store = store }

  func stored() throws -> StoredTokens? { try store.load() }

  func current() async throws -> StoredTokens {
    guard let tokens = try store.load() else { throw MusterError.loggedOut }
    return tokens
  }

  func adopt(_ tokens: Tokens) async throws {}

  func clear() async throws { try store.clear() }
}
