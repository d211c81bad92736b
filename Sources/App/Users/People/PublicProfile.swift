import Postgres

/// How a user is related to the reader.
struct Relationship: Sendable {
  enum Friendship: String {
    case none, friends
    /// The reader has sent them a friend request.
    case requested
    /// They have sent the reader a friend request.
    case requesting
  }

  let friendship: Friendship
  let mutualFriendCount: Int

  /// The columns for ``init(row:)``. For the reader's own id, friendship is `none` and the count is 0.
  ///
  /// A filtered request is there for its sender only: it waits apart until the receiver looks for it.
  ///
  /// - Parameters:
  ///   - user: an expression for an id, such as the column of an alias.
  ///   - most: how many of the user's friends are compared with the reader's; nil for all.
  static func columns(of user: SQL, to reader: User.ID, comparing most: Int? = nil) -> SQL {
    let limit: SQL = most.map { "LIMIT \(unescaped: "\($0)")" } ?? ""
    return """
      CASE
        WHEN EXISTS (\(friends(with: reader, and: user))) THEN 'friends'
        ELSE coalesce(
          (\(pendingRequest(direction(for: reader), between: reader, and: user))),
          'none')
      END AS friendship,
      (
        -- A filter, not a join: so the reader's friends are read once for all users, however many there are.
        SELECT count(*) FILTER (
          WHERE theirs.friend_id IN (SELECT mine.friend_id FROM friends AS mine WHERE mine.user_id = \(reader))
        )
        FROM (
          SELECT f.friend_id FROM friends AS f WHERE f.user_id = \(user) AND f.user_id <> \(reader) \(limit)
        ) AS theirs
      ) AS mutual_friend_count
      """
  }

  /// A query of the users with a pending request to or from the reader. A filtered one is for its sender only.
  static func pending(with reader: User.ID) -> SQL {
    """
    SELECT receiver_id FROM friend_requests WHERE status = 'pending' AND sender_id = \(reader)
    UNION ALL
    SELECT sender_id FROM friend_requests WHERE status = 'pending' AND receiver_id = \(reader) AND NOT filtered
    """
  }

  init(row: Row) throws {
    friendship = Friendship(rawValue: try row["friendship"]) ?? .none
    mutualFriendCount = try row["mutual_friend_count"]
  }
}

/// A user's profile as other users see it.
struct PublicProfile: Sendable {
  let person: Person
  let bio: String?
  let relationship: Relationship

  /// Nil if there is no such user, or if the reader cannot see them.
  static func find(_ id: User.ID, for reader: User.ID, in database: Database) async throws -> PublicProfile? {
    let row = try await database.first(
      """
      SELECT \(Person.columns("u")), u.bio, \(Relationship.columns(of: "u.id", to: reader))
      FROM users AS u
      WHERE u.id = \(id) AND \(User.visible("u.id", to: reader))
      """)
    return try row.map { row in
      PublicProfile(person: try Person(row: row), bio: try row["bio"], relationship: try Relationship(row: row))
    }
  }
}

/// A row if two people are friends.
private func friends(with reader: User.ID, and other: SQL) -> SQL {
  "SELECT 1 FROM friendships WHERE user_a = least(\(reader), \(other)) AND user_b = greatest(\(reader), \(other))"
}

private func direction(for reader: User.ID) -> SQL {
  "CASE WHEN q.sender_id = \(reader) THEN 'requested' ELSE 'requesting' END"
}

/// A column of the pending friend request between two users, if the reader sees one. A filtered one is for its sender
/// only.
private func pendingRequest(_ column: SQL = "q.sender_id", between reader: User.ID, and other: SQL) -> SQL {
  """
  SELECT \(column) FROM friend_requests AS q
  WHERE q.status = 'pending' AND least(q.sender_id, q.receiver_id) = least(\(reader), \(other))
    AND greatest(q.sender_id, q.receiver_id) = greatest(\(reader), \(other))
    AND (q.sender_id = \(reader) OR NOT q.filtered)
  """
}

/// A friend of friends.
struct Recommendation: Sendable {
  let person: Person
  let mutualFriendCount: Int

  /// The friends that are asked for theirs, the newest ones, and how many of each one's friends are counted. So a list
  /// costs the same with any number of users, however many friends these have.
  private static let maximumFriends = 200

  /// The users with the most mutual friends come first. Friends, and users with a pending request to or from the
  /// reader, are left out, and so are users who want to be found by no one.
  ///
  /// All but the last condition are sets of ids, so that only as many users are read as are shown.
  static func list(for reader: User.ID, atMost limit: Int, in database: Database) async throws -> [Recommendation] {
    // A reader with hundreds of friends waits longer. Other readers must not wait for them.
    let rows = try await database.slow.rows(
      """
      WITH mine AS MATERIALIZED (
        SELECT friend_id FROM friends WHERE user_id = \(reader)
        ORDER BY since DESC, friend_id
        LIMIT \(maximumFriends)
      )
      SELECT \(Person.columns("u")), r.mutual_friend_count
      FROM (
        SELECT theirs.friend_id, count(*) AS mutual_friend_count
        FROM mine
        CROSS JOIN LATERAL (
          SELECT friend_id FROM friends WHERE user_id = mine.friend_id ORDER BY friend_id LIMIT \(maximumFriends)
        ) AS theirs
        WHERE theirs.friend_id <> \(reader) AND \(User.visible("theirs.friend_id", to: reader))
          AND theirs.friend_id NOT IN (SELECT friend_id FROM friends WHERE user_id = \(reader))
          AND theirs.friend_id NOT IN (\(Relationship.pending(with: reader)))
        GROUP BY theirs.friend_id
        ORDER BY mutual_friend_count DESC, theirs.friend_id
        OFFSET 0
      ) AS r
      CROSS JOIN LATERAL (SELECT * FROM users WHERE id = r.friend_id AND findable_by <> 'no-one' OFFSET 0) AS u
      ORDER BY r.mutual_friend_count DESC, r.friend_id
      LIMIT \(limit)
      """)
    return try rows.map {
      Recommendation(person: try Person(row: $0), mutualFriendCount: try $0["mutual_friend_count"])
    }
  }
}

extension Recommendation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.recommendation(user: person, mutualFriendCount: mutualFriendCount)
  }
}

extension PublicProfile: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.publicProfile(
      id: person.id, username: person.username, displayName: person.displayName, bio: bio,
      pictureUrl: PublicURL.absolute(person.pictureURL), friendship: relationship.friendship,
      mutualFriendCount: relationship.mutualFriendCount)
  }
}
