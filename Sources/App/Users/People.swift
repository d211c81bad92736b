import Postgres

extension Person {
  /// Whoever is less like it is not meant: one typo, or two letters that have changed places, leave so much of a word of
  /// four letters.
  private static let leastLikeness = 0.2

  /// People whose username or display name has a part like `query`: without regard to case, accents or some typos,
  /// friends first, then by likeness. The reader is not among them.
  ///
  /// Whoever is less than half as like it as the likest one is left out: else friends who hardly are would stand before
  /// strangers who exactly are.
  static func named(
    _ query: String, for reader: User.ID, atMost limit: Int, in database: Database
  ) async throws -> [Person] {
    let answers = try await database.slow.send([likenessSetting, search(query, for: reader, atMost: limit)])
    return try answers[1].map { try Person(row: $0) }
  }

  /// How like a name must be for the index to hand it out: for the transaction of a ``search(_:for:atMost:)``.
  static let likenessSetting: SQL =
    "SELECT set_config('pg_trgm.word_similarity_threshold', \(String(leastLikeness)), true)"

  /// The order of strangers is the index's, which then reads as many as are wanted; its operand must be a value for
  /// that, so it is a subquery and no join. Of equally like parts, those of the likest whole names come first.
  ///
  /// - Returns: a query of people's columns.
  static func search(_ query: String, for reader: User.ID, atMost limit: Int) -> SQL {
    """
    WITH wanted AS MATERIALIZED (
      SELECT folded(\(query)) AS name
    ), mine AS MATERIALIZED (
      SELECT friend_id FROM friends WHERE user_id = \(reader)
    ), found AS (
      (
        SELECT u.id, true AS is_friend, word_similarity(wanted.name, u.search_name) AS likeness,
          similarity(wanted.name, u.search_name) AS whole_likeness
        FROM wanted
        CROSS JOIN mine
        JOIN users AS u ON u.id = mine.friend_id
        WHERE \(User.visible("u.id", to: reader))
      )
      UNION ALL
      (
        SELECT u.id, false, word_similarity((SELECT name FROM wanted), u.search_name),
          similarity((SELECT name FROM wanted), u.search_name)
        FROM users AS u
        -- Or a query that nobody is like, such as letters with spaces between, would go through all of the index.
        WHERE u.search_name %> (SELECT name FROM wanted) AND u.id <> \(reader)
          AND u.id NOT IN (SELECT friend_id FROM mine) AND \(User.visible("u.id", to: reader))
        ORDER BY u.search_name <->> (SELECT name FROM wanted), u.search_name <-> (SELECT name FROM wanted)
        LIMIT \(limit)
      )
    ), ranked AS (
      SELECT id, is_friend, likeness, whole_likeness, max(likeness) OVER () AS best FROM found
    )
    SELECT \(columns("u"))
    FROM ranked AS r
    JOIN users AS u ON u.id = r.id
    WHERE r.likeness >= \(leastLikeness) AND r.likeness >= r.best / 2
    ORDER BY r.is_friend DESC, r.likeness DESC, r.whole_likeness DESC, r.id
    LIMIT \(limit)
    """
  }
}

/// A friend of friends.
struct Recommendation: Sendable {
  let person: Person
  let mutualFriendCount: Int

  /// Those with the most mutual friends first; nobody who is a friend, has asked to be one, or was asked.
  static func list(for reader: User.ID, atMost limit: Int, in database: Database) async throws -> [Recommendation] {
    // Who has thousands of friends waits; others must not wait for them.
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
      WHERE u.id <> \(reader) AND \(User.visible("u.id", to: reader))
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

/// What anybody may know of somebody.
struct PublicProfile: Sendable {
  /// How somebody stands to the reader.
  enum Friendship: String {
    case none, friends
    /// The reader has asked them.
    case requested
    /// They have asked the reader.
    case requesting
  }

  let person: Person
  let bio: String?
  let friendship: Friendship
  let mutualFriendCount: Int

  /// Nil if there is nobody of this id, or not for this reader. Of oneself, friendship is `none` and the count 0.
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

/// Who of two people has asked the other, if the question stands.
private func pendingRequest(between reader: User.ID, and other: SQL) -> SQL {
  """
  SELECT q.sender_id FROM friend_requests AS q
  WHERE q.status = 'pending' AND least(q.sender_id, q.receiver_id) = least(\(reader), \(other))
    AND greatest(q.sender_id, q.receiver_id) = greatest(\(reader), \(other))
  """
}
