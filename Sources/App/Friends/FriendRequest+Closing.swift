import Postgres

extension FriendRequest {
  /// Accepts a request to the receiver. Repeating the call changes nothing.
  static func accept(
    _ id: ID, by receiver: User.ID, from sender: User.ID, in change: Change
  ) async throws -> FriendRequest {
    let status = try await lock(id, .incoming, of: receiver, and: sender, in: change)
    if status == .accepted { return try await find(id, in: change) }
    guard status == .pending else { throw AppError.friendRequestClosed(status) }
    let request = try await befriend(id, in: change)
    change.notify(request.sender.id, about: .friendAccepted(by: request.receiver))
    return request
  }

  /// Declines a request to the receiver. The sender is not notified. Repeating the call changes nothing.
  static func decline(
    _ id: ID, by receiver: User.ID, from sender: User.ID, in change: Change
  ) async throws -> FriendRequest {
    let status = try await lock(id, .incoming, of: receiver, and: sender, in: change)
    if status == .declined { return try await find(id, in: change) }
    guard status == .pending else { throw AppError.friendRequestClosed(status) }
    return try await close(id, as: .declined, in: change)
  }

  /// Cancels a request on behalf of its sender. The receiver is not notified, and loses the request's notification: it
  /// may be queued, on its way to a device, or in the inbox. Repeating the call changes nothing.
  static func cancel(
    _ id: ID, by sender: User.ID, to receiver: User.ID, in change: Change
  ) async throws -> FriendRequest {
    let status = try await lock(id, .sent, of: sender, and: receiver, in: change)
    if status == .cancelled { return try await find(id, in: change) }
    guard status == .pending else { throw AppError.friendRequestClosed(status) }
    let request = try await close(id, as: .cancelled, in: change)
    let (receiver, notice): (User.ID, SQL) = (
      request.receiver.id,
      "person_id = \(sender) AND type = \(Notice.Kind.friendRequest) AND payload->>'requestId' = \(id)::text"
    )
    // In this order: fan-out writes inbox items and deliveries, and the deletion from the queue waits for it.
    try change.write(NotificationQueue.delete(where: notice))
    try change.write(Delivery.delete(where: "recipient_id = \(receiver) AND \(notice)"))
    let item: SQL = "recipient_id = \(receiver) AND \(notice)"
    change.touch(.notifications, ofUsersIn: "SELECT recipient_id FROM notifications WHERE \(item)")
    change.erase("DELETE FROM notifications WHERE \(item)")
    return request
  }

  /// The other user of a request that a user received or sent. It never changes while the request exists.
  ///
  /// - Throws: ``AppError/friendRequestNotFound``
  static func other(
    in id: ID, _ direction: Direction, of user: User.ID, in database: some Querying
  ) async throws -> User.ID {
    let (mine, theirs) = direction.columns
    let other: User.ID? = try await database.value(
      "SELECT \(theirs) FROM friend_requests WHERE id = \(id) AND \(mine) = \(user)")
    guard let other else { throw AppError.friendRequestNotFound }
    return other
  }

  /// Locks both users, then the request, so that no other change happens between the two.
  ///
  /// - Throws: ``AppError/friendRequestNotFound`` unless the user received or sent the request and sees the other user.
  private static func lock(
    _ id: ID, _ direction: Direction, of user: User.ID, and other: User.ID, in change: Change
  ) async throws -> Status {
    let (mine, theirs) = direction.columns
    try change.lockAhead(user, other, for: .share)
    let status: Status? = try await change.value(
      """
      SELECT status FROM friend_requests
      WHERE id = \(id) AND \(mine) = \(user) AND \(theirs) = \(other) AND \(User.visible(theirs, to: user))
      FOR UPDATE
      """)
    guard let status else { throw AppError.friendRequestNotFound }
    return status
  }

  /// Makes the two users of a locked, pending request friends.
  static func befriend(_ id: ID, in change: Change) async throws -> FriendRequest {
    let request = try await close(id, as: .accepted, in: change)
    let (sender, receiver) = (request.sender.id, request.receiver.id)
    try change.write(
      """
      INSERT INTO friendships (user_a, user_b)
      VALUES (least(\(sender), \(receiver)), greatest(\(sender), \(receiver)))
      ON CONFLICT DO NOTHING
      """)
    change.touch(.friends, of: sender, receiver)
    return request
  }

  private static func close(_ id: ID, as status: Status, in change: Change) async throws -> FriendRequest {
    let results = try await change.pipeline(
      "UPDATE friend_requests SET status = \(status), closed_at = now() WHERE id = \(id) RETURNING filtered",
      finding(id))
    let request = try found(results[1])
    change.touch(.sentFriendRequests, of: request.sender.id)
    // The list of filtered requests is not a collection.
    if let row = results[0].first, try !row["filtered"] { change.touch(.friendRequests, of: request.receiver.id) }
    return request
  }
}
