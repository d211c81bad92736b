import Foundation

/// The users whom the caller has blocked.
public struct BlocksAPI: Sendable {
  let caller: APICaller

  /// The collection `blocks`, newest first.
  public func list(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Block> {
    try await caller.get(.page(.listBlocks, limit: limit, cursor: cursor))
  }

  /// Blocks a user. Ends friendship and requests, and hides each of the two from the other. Neither is notified.
  public func block(_ userID: User.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.block(userID), key: key))
  }

  /// Unblocks a user. Restores nothing that the block ended.
  public func unblock(_ userID: User.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.unblock(userID), key: key))
  }
}
