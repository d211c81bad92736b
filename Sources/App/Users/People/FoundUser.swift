import Postgres

/// A user in a search, and how they are related to the reader.
struct FoundUser: Sendable {
  let person: Person
  let relationship: Relationship

  /// - Parameter row: begins with the columns of the person.
  init(row: Row) throws {
    person = try Person(row: row)
    relationship = try Relationship(row: row)
  }
}

extension FoundUser {
  /// The minimum similarity of a match. A word of four letters with one typo, or with two letters swapped, has this
  /// much.
  private static let minimumSimilarity = 0.2

  /// The friends of each person that are compared with the reader's. Without a limit, a page of people with thousands of
  /// friends takes a quarter of a second.
  static let friendsCompared = 1000

  /// Those of some people whom a user sees, in the given order.
  static func these(_ ids: [User.ID], for reader: User.ID, in database: Database) async throws -> [FoundUser] {
    // Of people with thousands of friends, the mutual ones take a while. Other readers must not wait for them.
    try await database.slow.rows(
      """
      SELECT \(Person.columns("u")), \(Relationship.columns(of: "u.id", to: reader, comparing: friendsCompared))
      FROM users AS u
      WHERE u.id = ANY(\(ids)) AND \(User.visible("u.id", to: reader))
      ORDER BY array_position(\(ids), u.id)
      """
    ).map(FoundUser.init(row:))
  }

  /// People whose username or display name has a part that is similar to `query`, ignoring case, accents and some
  /// typos. Friends come first, then the most similar names. The reader is left out, and so are strangers whose
  /// ``User/Audience`` does not include the reader.
  ///
  /// A person who is less than half as similar as the best match is left out. Otherwise friends who hardly match would
  /// come before strangers who match exactly.
  static func named(
    _ query: String, for reader: User.ID, atMost limit: Int, in database: Database
  ) async throws -> [FoundUser] {
    let results = try await database.slow.send([similaritySetting, search(query, for: reader, atMost: limit)])
    return try results[1].map(FoundUser.init(row:))
  }

  /// Sets the minimum similarity at which the index returns a name, for the transaction of a ``search(_:for:atMost:)``.
  static let similaritySetting: SQL =
    "SELECT set_config('pg_trgm.word_similarity_threshold', \(String(minimumSimilarity)), true)"

  /// Strangers come in the order of the index, which then reads only as many as are wanted. For that, its operand must
  /// be a value, so it is a subquery and not a join. Among equally similar parts, the most similar whole names come
  /// first.
  ///
  /// The relationships are read for the people on the page, and for no others.
  ///
  /// - Returns: a query for the columns of ``init(row:)``.
  static func search(_ query: String, for reader: User.ID, atMost limit: Int) -> SQL {
    """
    WITH wanted AS MATERIALIZED (
      SELECT folded(\(query)) AS name
    ), mine AS MATERIALIZED (
      SELECT friend_id FROM friends WHERE user_id = \(reader)
    ), found AS (
      (
        SELECT u.id, true AS is_friend, word_similarity(wanted.name, u.search_name) AS similarity,
          similarity(wanted.name, u.search_name) AS whole_similarity
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
        -- Without this, a query that matches no one, such as letters with spaces between, would scan the whole index.
        WHERE u.search_name %> (SELECT name FROM wanted) AND u.id <> \(reader)
          AND u.id NOT IN (SELECT friend_id FROM mine) AND \(User.visible("u.id", to: reader))
          -- The first condition is that of the index.
          AND u.findable_by <> 'no-one'
          AND \(User.Audience.includes("u.findable_by", of: "u.id", userWithFriends: "SELECT friend_id FROM mine"))
        ORDER BY u.search_name <->> (SELECT name FROM wanted), u.search_name <-> (SELECT name FROM wanted)
        LIMIT \(limit)
      )
    ), ranked AS (
      SELECT id, is_friend, similarity, whole_similarity, max(similarity) OVER () AS best FROM found
    )
    SELECT \(Person.columns("u")), \(Relationship.columns(of: "u.id", to: reader, comparing: friendsCompared))
    FROM (
      SELECT id, is_friend, similarity, whole_similarity FROM ranked
      WHERE similarity >= \(minimumSimilarity) AND similarity >= best / 2
      ORDER BY is_friend DESC, similarity DESC, whole_similarity DESC, id
      LIMIT \(limit)
    ) AS r
    JOIN users AS u ON u.id = r.id
    ORDER BY r.is_friend DESC, r.similarity DESC, r.whole_similarity DESC, r.id
    """
  }
}

extension FoundUser: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.foundUser(
      id: person.id, username: person.username, displayName: person.displayName,
      pictureUrl: PublicURL.absolute(person.pictureURL), friendship: relationship.friendship,
      mutualFriendCount: relationship.mutualFriendCount)
  }
}
