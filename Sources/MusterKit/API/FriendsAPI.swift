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

/// Friend requests to and from the caller.
public struct FriendRequestsAPI: Sendable {
  let caller: APICaller

  /// Pending requests, newest first.
  public func list(
    _ direction: RequestDirection = .incoming, limit: Int? = nil, cursor: String? = nil
  ) async throws -> Page<FriendRequest> {
    try await caller.get(
      .page(.listFriendRequests, [("direction", direction.rawValue)], limit: limit, cursor: cursor))
  }

  /// A request that the caller has sent or received, in any state.
  ///
  /// - Throws: ``MusterError``: `friend-request-not-found`
  public func get(_ id: FriendRequest.ID) async throws -> FriendRequest {
    try await caller.get(.read(.getFriendRequest(id)))
  }

  /// Asks a user to be friends.
  ///
  /// - Parameter id: the id of the new request. With it, the call can be repeated at any age: it then returns the request
  ///   as it is.
  /// - Returns: the pending request, which has another id if it existed already; or, if the other user had asked
  ///   already, their request, now accepted.
  /// - Throws: ``MusterError``: `user-not-found`, `already-friends`, `id-taken`, `requests-closed`,
  ///   `too-many-friend-requests` with a `retryAfter` that may be days
  @discardableResult
  public func send(
    to userID: User.ID, id: FriendRequest.ID? = nil, key: IdempotencyKey = .random()
  ) async throws -> FriendRequest {
    try await caller.get(.write(.sendFriendRequest, FriendRequestDraft(id: id, receiverId: userID), key: key))
  }

  /// Accepts a request that the caller received. Accepting again returns the same.
  ///
  /// - Throws: ``MusterError``: `friend-request-not-found`, `friend-request-closed`
  @discardableResult
  public func accept(_ id: FriendRequest.ID, key: IdempotencyKey = .random()) async throws -> FriendRequest {
    try await caller.get(.write(.acceptFriendRequest(id), key: key))
  }

  /// Declines a request that the caller received. The sender is not notified.
  ///
  /// - Throws: ``MusterError``: `friend-request-not-found`, `friend-request-closed`
  @discardableResult
  public func decline(_ id: FriendRequest.ID, key: IdempotencyKey = .random()) async throws -> FriendRequest {
    try await caller.get(.write(.declineFriendRequest(id), key: key))
  }

  /// Cancels a request that the caller sent.
  ///
  /// - Throws: ``MusterError``: `friend-request-not-found`, `friend-request-closed`
  @discardableResult
  public func cancel(_ id: FriendRequest.ID, key: IdempotencyKey = .random()) async throws -> FriendRequest {
    try await caller.get(.write(.cancelFriendRequest(id), key: key))
  }
}
