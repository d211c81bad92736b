import Postgres

/// A user's profile as other users see it.
struct PublicProfile: Sendable {
  /// How the user is related to the reader.
  enum Friendship: String {
    case none, friends
    /// The reader has sent them a friend request.
    case requested
    /// They have sent the reader a friend request.
    case requesting
  }

  let person: Person
  let bio: String?
  let friendship: Friendship
  let mutualFriendCount: Int

  /// Nil if there is no such user, or if the reader cannot see them. For the reader's own id, friendship is `none` and
  /// the count is 0.
  static func find(_ id: User.ID, for reader: User.ID, in database: Database) async throws -> PublicProfile? {
    let row = try await database.first(
      """
      SELECT \(Person.columns("u")), u.bio, EXISTS (\(friends(with: reader, and: "u.id"))) AS is_friend,
        (\(pendingRequest(between: reader, and: "u.id"))) AS asking_id,
        (
          SELECT count(*)
          FROM friends AS mine
          JOIN friends AS theirs ON theirs.friend_id = mine.friend_id
          WHERE mine.user_id = \(reader) AND theirs.user_id = u.id AND u.id <> \(reader)
        ) AS mutual_friend_count
      FROM users AS u
      WHERE u.id = \(id) AND \(User.visible("u.id", to: reader))
      """)
    return try row.map { row in
      let (isFriend, asking): (Bool, User.ID?) = (try row["is_friend"], try row["asking_id"])
      let friendship: Friendship =
        if isFriend { .friends } else if let asking { asking == reader ? .requested : .requesting } else { .none }
      return PublicProfile(
        person: try Person(row: row), bio: try row["bio"], friendship: friendship,
        mutualFriendCount: try row["mutual_friend_count"])
    }
  }
}

/// A row if two people are friends.
private func friends(with reader: User.ID, and other: SQL) -> SQL {
  "SELECT 1 FROM friendships WHERE user_a = least(\(reader), \(other)) AND user_b = greatest(\(reader), \(other))"
}

/// The sender of the pending friend request between two users, if there is one.
private func pendingRequest(between reader: User.ID, and other: SQL) -> SQL {
  """
  SELECT q.sender_id FROM friend_requests AS q
  WHERE q.status = 'pending' AND least(q.sender_id, q.receiver_id) = least(\(reader), \(other))
    AND greatest(q.sender_id, q.receiver_id) = greatest(\(reader), \(other))
  """
}

/// A friend of friends.
struct Recommendation: Sendable {
  let person: Person
  let mutualFriendCount: Int

  /// The users with the most mutual friends come first. Friends, and users with a pending request to or from the
  /// reader, are left out, and so are users who want to be found by no one.
  static func list(for reader: User.ID, atMost limit: Int, in database: Database) async throws -> [Recommendation] {
    // A reader with thousands of friends waits longer. Other readers must not wait for them.
    let rows = try await database.slow.rows(
      """
      SELECT \(Person.columns("u")), r.mutual_friend_count
      FROM (
        SELECT theirs.friend_id, count(*) AS mutual_friend_count
        FROM friends AS mine
        JOIN friends AS theirs ON theirs.user_id = mine.friend_id
        WHERE mine.user_id = \(reader)
        GROUP BY theirs.friend_id
      ) AS r
      JOIN users AS u ON u.id = r.friend_id
      WHERE u.id <> \(reader) AND u.findable_by <> 'no-one' AND \(User.visible("u.id", to: reader))
        AND NOT EXISTS (\(friends(with: reader, and: "u.id")))
        AND NOT EXISTS (\(pendingRequest(between: reader, and: "u.id")))
      ORDER BY r.mutual_friend_count DESC, u.id
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
      pictureUrl: PublicURL.absolute(person.pictureURL), friendship: friendship, mutualFriendCount: mutualFriendCount)
  }
}
