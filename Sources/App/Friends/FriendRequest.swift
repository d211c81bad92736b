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
    try found(try await database.rows(finding(id)))
  }

  static func finding(_ id: ID) -> SQL {
    "SELECT \(columns) FROM \(source) WHERE r.id = \(id)"
  }

  /// - Throws: ``AppError/friendRequestNotFound``
  static func found(_ rows: Rows) throws -> FriendRequest {
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
