import Postgres

extension FriendRequest {
  /// The result of sending a friend request.
  enum Sent: Sendable {
    case created(FriendRequest)
    case alreadyPending(FriendRequest)
    /// The receiver had also sent a request, so the two are now friends.
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

  /// Sends a friend request. If its sender has proven no address and has no identity, it waits in the receiver's folder
  /// of filtered requests, and the receiver is not notified: see ``release(of:in:)``.
  ///
  /// The receiver's preference decides who may ask. It does not matter for users whom the receiver has asked.
  ///
  /// - Parameter isLimited: false for load tests, which send more requests than people do.
  /// - Throws: ``AppError/requestsClosed``; ``AppError`` `too-many-friend-requests`, see ``checkLimits(of:to:in:)``.
  static func send(
    from sender: User.ID, to receiver: User.ID, isLimited: Bool = true, in change: Change
  ) async throws -> Sent {
    guard sender != receiver else { throw AppError.invalid("receiverId", .notAllowed, "must be another user") }
    // Before the user locks, so that a request that waits for its turn holds no lock on the two users.
    try change.write(User.takingTurns(at: .friendRequests, by: sender))
    try await change.lockBoth(sender, receiver, for: .share)
    // The other user may accept or send a request at this moment. The insert waits for that at the unique index of one
    // pending request per pair. Only then is it certain whether the two are friends.
    let friends: SQL = "SELECT friend_id FROM friends WHERE user_id = \(sender)"
    while true {
      let id = ID.new()
      let results = try await change.pipeline(
        """
        INSERT INTO friend_requests (id, sender_id, receiver_id, filtered)
        SELECT \(id), u.id, \(receiver), NOT \(User.isProven("u")) FROM users AS u WHERE u.id = \(sender)
        ON CONFLICT DO NOTHING
        """,
        """
        SELECT 1 FROM friendships
        WHERE user_a = least(\(sender), \(receiver)) AND user_b = greatest(\(sender), \(receiver))
        """,
        """
        SELECT \(User.Audience.includes("u.requests_from", of: "u.id", userWithFriends: friends)) AS may_ask
        FROM users AS u WHERE u.id = \(receiver) AND \(User.visible("u.id", to: sender))
        """)
      // The error also rolls the request back.
      guard let seen = results[2].first else { throw AppError.userNotFound }
      guard results[1].isEmpty else { throw AppError.alreadyFriends }
      if results[0].affected == 1 {
        guard try seen["may_ask"] else { throw AppError.requestsClosed }
        if isLimited { try await checkLimits(of: sender, to: receiver, in: change) }
        let request = try await find(id, in: change)
        change.touch(.sentFriendRequests, of: sender)
        if !request.isFiltered { announce(request, in: change) }
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

  /// Moves the filtered requests of a user who has proven an address, or has linked an identity, to their receivers'
  /// other requests, and notifies the receivers now. The caller has locked the user's row for an update, so that no
  /// request is sent or closed meanwhile.
  static func release(of sender: User.ID, in change: Change) async throws {
    let released = try await change.rows(
      """
      WITH released AS (
        UPDATE friend_requests SET filtered = false
        WHERE id IN (
          SELECT id FROM friend_requests WHERE sender_id = \(sender) AND status = 'pending' AND filtered
          ORDER BY id
          FOR UPDATE
        )
        RETURNING id, sender_id, receiver_id, status, filtered, created_at
      )
      SELECT \(columns) FROM released AS r
      JOIN users AS sender ON sender.id = r.sender_id
      JOIN users AS receiver ON receiver.id = r.receiver_id
      ORDER BY r.id
      """
    ).map(FriendRequest.init(row:))
    guard !released.isEmpty else { return }
    change.touch(.sentFriendRequests, of: sender)
    for request in released { announce(request, in: change) }
  }

  private static func announce(_ request: FriendRequest, in change: Change) {
    change.touch(.friendRequests, of: request.receiver.id)
    change.notify(request.receiver.id, about: .friendRequest(request.id, from: request.sender))
  }
}

extension AppError {
  /// The same for all preferences that refuse a request, so that it does not reveal which one the user has.
  static let requestsClosed = AppError(
    .forbidden, "requests-closed", "This user does not accept your friend requests.")
}
