import Postgres

/// A request of one user to be friends with another. When it is closed, its row stays with the final status.
public struct FriendRequest: Sendable {
  public typealias ID = Identifier<FriendRequest>

  enum Status: String, SQLValue {
    case pending, accepted, declined, cancelled
  }

  enum Direction: String, CaseIterable {
    case incoming, sent

    /// The columns of the list's owner and of the other user.
    var columns: (mine: SQL, theirs: SQL) {
      switch self {
      case .incoming: ("receiver_id", "sender_id")
      case .sent: ("sender_id", "receiver_id")
      }
    }
  }

  let id: ID
  let sender: Person
  let receiver: Person
  let status: Status
  let createdAt: Timestamp

  init(row: Row) throws {
    id = try row["id"]
    sender = try row["sender"]
    receiver = try row["receiver"]
    status = try row["status"]
    createdAt = try row["created_at"]
  }

  static let columns: SQL = """
    r.id, \(Person.record("sender")) AS sender, \(Person.record("receiver")) AS receiver, r.status, r.created_at
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
    guard let row = try await database.first("SELECT \(columns) FROM \(source) WHERE r.id = \(id)") else {
      throw AppError.friendRequestNotFound
    }
    return try FriendRequest(row: row)
  }

  /// The pending requests, newest first.
  static func list(
    _ direction: Direction, of user: User.ID, page: PageRequest, in database: some Querying
  ) async throws -> List<FriendRequest> {
    let mine: SQL = direction == .incoming ? "r.receiver_id" : "r.sender_id"
    let theirs: SQL = direction == .incoming ? "r.sender_id" : "r.receiver_id"
    return try await List.read(
      direction == .incoming ? .friendRequests : .sentFriendRequests, of: user, page: page,
      query: Keyset(
        list: direction == .incoming ? .incomingRequests : .sentRequests, columns: columns,
        source: "\(source) WHERE \(mine) = \(user) AND r.status = 'pending' AND \(User.visible(theirs, to: user))",
        time: "r.created_at", id: "r.id", order: .descending),
      in: database, item: FriendRequest.init(row:))
  }
}

extension AppError {
  static let friendRequestNotFound = AppError(.notFound, "friend-request-not-found", "There is no such friend request.")
  static let alreadyFriends = AppError(.conflict, "already-friends", "You are already friends.")
  static func friendRequestClosed(_ status: FriendRequest.Status) -> AppError {
    AppError(.conflict, "friend-request-closed", "The friend request is already \(status.rawValue).")
  }
}
