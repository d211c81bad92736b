import Postgres

extension FriendRequest {
  /// The result of sending a friend request.
  enum Sent: Sendable {
    case created(FriendRequest)
    case alreadyPending(FriendRequest)
    /// The receiver had sent a request too, so the two are friends now.
    case accepted(FriendRequest)
  }

  /// The pending request of one user to another, if the sender sees the receiver. It is the response to a repeated
  /// request. This read takes no lock, so that repeated requests do not delay other changes of the receiver.
  static func pending(
    from sender: User.ID, to receiver: User.ID, in database: some Querying
  ) async throws -> FriendRequest? {
    try await database.first(
      """
      SELECT \(columns) FROM \(source)
      WHERE r.status = 'pending' AND least(r.sender_id, r.receiver_id) = least(\(sender), \(receiver))
        AND greatest(r.sender_id, r.receiver_id) = greatest(\(sender), \(receiver))
        AND r.sender_id = \(sender) AND \(User.visible("r.receiver_id", to: sender))
      """
    ).map(FriendRequest.init(row:))
  }

  /// Sends a friend request.
  ///
  /// - Parameter isLimited: false for load tests, which send more requests than people do.
  /// - Throws: ``AppError`` `too-many-friend-requests`, see ``checkLimits(of:to:in:)``.
  static func send(
    from sender: User.ID, to receiver: User.ID, isLimited: Bool = true, in change: Change
  ) async throws -> Sent {
    guard sender != receiver else { throw AppError.invalid("receiverId", .notAllowed, "must be another user") }
    // Before the user locks, so that a request that waits for its turn holds no lock on the two users.
    try change.write(User.takingTurns(at: .friendRequests, by: sender))
    try await change.lockBoth(sender, receiver, for: .share)
    // The other user may accept or send a request at this moment. The insert waits for that at the unique index of one
    // pending request per pair. Only then is it certain whether the two are friends.
    while true {
      let id = ID.new()
      let results = try await change.pipeline(
        """
        INSERT INTO friend_requests (id, sender_id, receiver_id) VALUES (\(id), \(sender), \(receiver))
        ON CONFLICT DO NOTHING
        """,
        """
        SELECT 1 FROM friendships
        WHERE user_a = least(\(sender), \(receiver)) AND user_b = greatest(\(sender), \(receiver))
        """,
        "SELECT 1 WHERE \(User.visible("\(receiver)", to: sender))")
      // The error also rolls the request back.
      guard !results[2].isEmpty else { throw AppError.userNotFound }
      guard results[1].isEmpty else { throw AppError.alreadyFriends }
      if results[0].affected == 1 {
        if isLimited { try await checkLimits(of: sender, to: receiver, in: change) }
        let request = try await find(id, in: change)
        change.touch(.sentFriendRequests, of: sender)
        change.touch(.friendRequests, of: receiver)
        change.notify(receiver, about: .friendRequest(id, from: request.sender))
        return .created(request)
      }
      let pending = try await change.first(
        """
        SELECT id, sender_id FROM friend_requests
        WHERE status = 'pending' AND least(sender_id, receiver_id) = least(\(sender), \(receiver))
          AND greatest(sender_id, receiver_id) = greatest(\(sender), \(receiver))
        FOR UPDATE
        """)
      // Closed in between: try again.
      guard let pending else { continue }
      let pendingID: ID = try pending["id"]
      if try pending["sender_id"] == sender { return .alreadyPending(try await find(pendingID, in: change)) }
      let accepted = try await befriend(pendingID, in: change)
      change.notify(accepted.sender.id, about: .friendAccepted(by: accepted.receiver))
      change.notify(accepted.receiver.id, about: .friendAccepted(by: accepted.sender))
      return .accepted(accepted)
    }
  }
}
