import Foundation

/// Other users.
public struct UsersAPI: Sendable {
  let caller: APICaller

  /// A user's public profile.
  ///
  /// - Throws: ``MusterError``: `user-not-found`
  public func get(_ id: User.ID) async throws -> PublicProfile {
    try await caller.get(.read(.getUser(id)))
  }

  /// Up to 100 users in the order of their ids, without those whom the caller may not see, and how they are related to
  /// the caller.
  public func find(_ ids: [User.ID]) async throws -> [FoundUser] {
    let query = [("ids", ids.map(\.wire).joined(separator: ","))]
    let page: Page<FoundUser> = try await caller.get(.read(.searchUsers, query))
    return page.items
  }

  /// Users whose names are similar to `query`, the best matches first. Without those whose ``User/findableBy`` does not
  /// include the caller. Each comes with ``FoundUser/friendship``, so that a screen shows the right button.
  public func search(for query: String, limit: Int? = nil) async throws -> [FoundUser] {
    let page: Page<FoundUser> = try await caller.get(
      .read(.searchUsers, [("query", query), ("limit", limit.map(String.init))]))
    return page.items
  }

  /// Friends of friends, those with the most mutual friends first.
  public func recommended(limit: Int? = nil) async throws -> [Recommendation] {
    let page: Page<Recommendation> = try await caller.get(
      .read(.listRecommendedUsers, [("limit", limit.map(String.init))]))
    return page.items
  }
}

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
