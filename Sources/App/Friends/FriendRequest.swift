import Postgres

/// A request of one user to be friends with another. When it is closed, its row stays with the final status.
public struct FriendRequest: Sendable {
  public typealias ID = Identifier<FriendRequest>

  enum Status: String, SQLValue {
    case pending, accepted, declined, cancelled
  }

  enum Direction: String, CaseIterable {
    case incoming, sent
    /// Received, from accounts that have proven no address. Phones keep no copy of this list.
    case filtered

    /// The columns of the list's owner and of the other user.
    var columns: (mine: SQL, theirs: SQL) {
      switch self {
      case .incoming, .filtered: ("receiver_id", "sender_id")
      case .sent: ("sender_id", "receiver_id")
      }
    }

    var collection: Collection? {
      switch self {
      case .incoming: .friendRequests
      case .sent: .sentFriendRequests
      case .filtered: nil
      }
    }

    fileprivate var name: ListName {
      switch self {
      case .incoming: .incomingRequests
      case .sent: .sentRequests
      case .filtered: .filteredRequests
      }
    }

    /// A condition on `friend_requests AS r`, besides its user.
    fileprivate var condition: SQL {
      switch self {
      case .incoming: "r.status = 'pending' AND NOT r.filtered"
      case .sent: "r.status = 'pending'"
      case .filtered: "r.status = 'pending' AND r.filtered"
      }
    }
  }

  let id: ID
  let sender: Person
  let receiver: Person
  let status: Status
  /// Whether it waits apart from the receiver's other requests, because its sender has proven no address.
  let isFiltered: Bool
  let createdAt: Timestamp

  init(row: Row) throws {
    id = try row["id"]
    sender = try row["sender"]
    receiver = try row["receiver"]
    status = try row["status"]
    isFiltered = try row["filtered"]
    createdAt = try row["created_at"]
  }

  static let columns: SQL = """
    r.id, \(Person.record("sender")) AS sender, \(Person.record("receiver")) AS receiver, r.status,
    r.status = 'pending' AND r.filtered AS filtered, r.created_at
    """
  static let source: SQL = """
    friend_requests AS r
    JOIN users AS sender ON sender.id = r.sender_id
    JOIN users AS receiver ON receiver.id = r.receiver_id
    """

  /// A request that a user has sent or received, open or closed, unless the other user is hidden from them.
  static func find(_ id: ID, for user: User.ID, in database: some Querying) async throws -> FriendRequest? {
    try await database.first(
      """
      SELECT \(columns) FROM \(source)
      WHERE r.id = \(id) AND \(user) IN (r.sender_id, r.receiver_id)
        AND \(User.visible("r.sender_id", to: user)) AND \(User.visible("r.receiver_id", to: user))
      """
    ).map(FriendRequest.init(row:))
  }

  /// - Throws: ``AppError/friendRequestNotFound``
  static func find(_ id: ID, in database: some Querying) async throws -> FriendRequest {
    try request(in: try await database.rows(finding(id)))
  }

  /// A query for a request, without a check of who asks. ``request(in:)`` reads its result.
  static func finding(_ id: ID) -> SQL {
    "SELECT \(columns) FROM \(source) WHERE r.id = \(id)"
  }

  /// - Throws: ``AppError/friendRequestNotFound``
  static func request(in rows: Rows) throws -> FriendRequest {
    guard let row = rows.first else { throw AppError.friendRequestNotFound }
    return try FriendRequest(row: row)
  }

  /// The pending requests, newest first.
  static func list(
    _ direction: Direction, of user: User.ID, page: PageRequest, in database: some Querying
  ) async throws -> List<FriendRequest> {
    let (mine, theirs) = direction.columns
    let query = Keyset(
      list: direction.name, columns: columns,
      source: """
        \(source) WHERE r.\(mine) = \(user) AND \(direction.condition) AND \(User.visible("r.\(theirs)", to: user))
        """,
      time: "r.created_at", id: "r.id", order: .descending)
    guard let collection = direction.collection else {
      return try await List.read(page: page, query: query, in: database, item: FriendRequest.init(row:))
    }
    return try await List.read(
      collection, of: user, page: page, query: query, in: database, item: FriendRequest.init(row:))
  }
}

extension AppError {
  static let friendRequestNotFound = AppError(.notFound, "friend-request-not-found", "There is no such friend request.")
  static let alreadyFriends = AppError(.conflict, "already-friends", "You are already friends.")
  static func friendRequestClosed(_ status: FriendRequest.Status) -> AppError {
    AppError(.conflict, "friend-request-closed", "The friend request is already \(status.rawValue).")
  }
}

extension FriendRequest {
  /// The result of sending a friend request.
  enum Sent: Sendable {
    case created(FriendRequest)
    case alreadyPending(FriendRequest)
    /// The sender has sent it before, with the same id. It may be closed by now.
    case alreadySent(FriendRequest)
    /// The receiver had also sent a request, so the two are now friends. This is the receiver's request, or the sender's
    /// own if it has an id of the client's.
    case accepted(FriendRequest)
  }

  /// The pending request of one user to another, if the sender sees the receiver. It is the response to a repeated
  /// request. This read takes no lock on the users, so that repeated requests do not delay other
  /// changes of the receiver.
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

  /// The request that a user has sent with an id that the user's client has made, open or closed.
  ///
  /// - Throws: ``AppError/idTaken`` if it is not the user's; ``AppError/userNotFound`` if the user does not see the
  ///   receiver, whose account may be gone.
  static func sent(_ id: ID, by sender: User.ID, in database: some Querying) async throws -> FriendRequest? {
    let row = try await database.first(
      "SELECT \(columns), \(User.visible("r.receiver_id", to: sender)) AS is_visible FROM \(source) WHERE r.id = \(id)")
    guard let row else {
      try await SpentID.check(id, .friendRequest, by: sender, in: database)
      return nil
    }
    let request = try FriendRequest(row: row)
    guard request.sender.id == sender else { throw AppError.idTaken }
    guard try row["is_visible"] else { throw AppError.userNotFound }
    return request
  }

  /// Sends a friend request. If its sender has proven no address and has no identity, it waits in the receiver's folder
  /// of filtered requests, and the receiver is not notified: see ``release(of:in:)``.
  ///
  /// The receiver's preference decides who may ask. It does not matter for users whom the receiver has asked.
  ///
  /// - Parameter isLimited: false for load tests, which send more requests than people do.
  /// - Throws: ``AppError/requestsClosed``; ``AppError/idTaken``; ``AppError`` `too-many-friend-requests`, see
  ///   ``checkLimits(of:to:in:)``.
  static func send(
    _ id: NewID<FriendRequest> = NewID(nil), from sender: User.ID, to receiver: User.ID, isLimited: Bool = true,
    in change: Change
  ) async throws -> Sent {
    guard sender != receiver else { throw AppError.invalid("receiverId", .notAllowed, "must be another user") }
    // Before the user locks, so that a request that waits for its turn holds no lock on the two users.
    try User.takeTurn(at: .friendRequests, by: sender, in: change)
    try await change.lockBoth(sender, receiver, for: .share)
    // The other user may accept or send a request at this moment. The insert waits for that at the unique index of one
    // pending request per pair. Only then is it certain whether the two are friends.
    let friends: SQL = "SELECT friend_id FROM friends WHERE user_id = \(sender)"
    while true {
      let results = try await change.pipeline(
        """
        INSERT INTO friend_requests (id, sender_id, receiver_id, filtered)
        SELECT \(id.value), u.id, \(receiver), NOT \(User.isProven("u")) FROM users AS u WHERE u.id = \(sender)
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
      // Whatever the two are by now. The insert has waited for a request with this id that ran at this moment.
      if id.isGiven, results[0].affected == 0, let sent = try await sent(id.value, by: sender, in: change) {
        return .alreadySent(sent)
      }
      // The error also rolls the request back.
      guard let seen = results[2].first else { throw AppError.userNotFound }
      guard results[1].isEmpty else { throw AppError.alreadyFriends }
      if results[0].affected == 1 {
        guard try seen["may_ask"] else { throw AppError.requestsClosed }
        if isLimited { try await checkLimits(of: sender, to: receiver, in: change) }
        let request = try await find(id.value, in: change)
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
      return .accepted(
        id.isGiven ? try await insertAccepted(id.value, from: sender, to: receiver, in: change) : accepted)
    }
  }

  /// Inserts a request that has met one in the opposite direction. The client may have named its id already, and must
  /// learn that it is too late to cancel it.
  private static func insertAccepted(
    _ id: ID, from sender: User.ID, to receiver: User.ID, in change: Change
  ) async throws -> FriendRequest {
    try change.write(
      """
      INSERT INTO friend_requests (id, sender_id, receiver_id, status, closed_at)
      VALUES (\(id), \(sender), \(receiver), 'accepted', now())
      ON CONFLICT (id) DO NOTHING
      """)
    guard let inserted = try await sent(id, by: sender, in: change) else { throw AppError.idTaken }
    return inserted
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
    let request = try self.request(in: results[1])
    change.touch(.sentFriendRequests, of: request.sender.id)
    // The list of filtered requests is not a collection.
    if let row = results[0].first, try !row["filtered"] { change.touch(.friendRequests, of: request.receiver.id) }
    return request
  }
}
