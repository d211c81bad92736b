import Foundation

/// The caller's friends.
public struct FriendsAPI: Sendable {
  let caller: APICaller
  /// Friend requests of and to the caller.
  public let requests: FriendRequestsAPI

  init(caller: APICaller) {
    self.caller = caller
    requests = FriendRequestsAPI(caller: caller)
  }

  /// The collection `friends`, newest first.
  public func list(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Friend> {
    try await caller.get(.page(.listFriends, limit: limit, cursor: cursor))
  }

  /// Ends a friendship. Succeeds even if the two are not friends.
  public func end(with userID: User.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.endFriendship(userID), key: key))
  }
}
