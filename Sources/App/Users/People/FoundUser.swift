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

  /// People whose username or display name has words that begin like those of `query`, ignoring case, accents and one
  /// typo a word. Friends come first, then the most similar names. The reader is left out, and so are strangers whose
  /// ``User/Audience`` does not include the reader.
  ///
  /// A person who is less than half as similar as the best match is left out. Otherwise friends who hardly match would
  /// come before strangers who match exactly.
  static func named(
    _ query: String, for reader: User.ID, atMost limit: Int, in database: Database
  ) async throws -> [FoundUser] {
    try await database.slow.rows(search(query, for: reader, atMost: limit)).map(FoundUser.init(row:))
  }

  /// The strangers with all words of a query whom a search compares, and as many who are like it. So a search costs the
  /// same with any number of users. If more have a name, those who registered first are compared, and the one with
  /// exactly this username.
  static let maximumCompared = 200
  /// Each has some thirty keys.
  private static let maximumWords = 8

  /// Friends are all compared, and so is a limited number of strangers whom the index finds. As subqueries, the limits
  /// have no value that the planner knows, so that it never prefers to read all users.
  ///
  /// The relationships are read for the people on the page, and for no others.
  ///
  /// - Returns: a query for the columns of ``init(row:)``.
  static func search(_ query: String, for reader: User.ID, atMost limit: Int) -> SQL {
    """
    WITH wanted AS MATERIALIZED (
      SELECT name, words, ARRAY(
        SELECT key FROM unnest(name_keys(array_to_string(words, ' '))) AS key WHERE char_length(key) > 2
      ) AS keys
      FROM (
        SELECT name, (name_words(name))[:\(maximumWords)] AS words FROM (SELECT folded(\(query)) AS name) AS folded
      ) AS split
    ), mine AS MATERIALIZED (
      SELECT friend_id FROM friends WHERE user_id = \(reader)
    ), matching AS MATERIALIZED (
      SELECT u.id FROM users AS u
      -- The condition on the audience is that of the index.
      WHERE name_keys(u.search_name) @> (SELECT words FROM wanted) AND u.findable_by <> 'no-one'
        AND (SELECT words <> '{}' FROM wanted)
      LIMIT (SELECT \(maximumCompared))
    ), alike AS MATERIALIZED (
      SELECT u.id FROM users AS u
      WHERE name_keys(u.search_name) && (SELECT keys FROM wanted) AND u.findable_by <> 'no-one'
      LIMIT (SELECT CASE WHEN count(*) < \(maximumCompared) THEN \(maximumCompared) ELSE 0 END FROM matching)
    ), found AS (
      SELECT u.id, true AS is_friend, word_similarity(wanted.name, u.search_name) AS similarity,
        similarity(wanted.name, u.search_name) AS whole_similarity
      FROM wanted
      CROSS JOIN mine
      -- OFFSET 0 keeps each row a lookup: the planner may expect more friends than there are, and read all users.
      CROSS JOIN LATERAL (SELECT * FROM users WHERE users.id = mine.friend_id OFFSET 0) AS u
      WHERE \(User.visible("u.id", to: reader))
      UNION ALL
      SELECT u.id, false, word_similarity(wanted.name, u.search_name), similarity(wanted.name, u.search_name)
      FROM wanted
      CROSS JOIN (
        SELECT id FROM matching
        UNION
        SELECT id FROM alike
        UNION
        SELECT id FROM users WHERE username_key = ascii_folded(\(query)) AND findable_by <> 'no-one'
      ) AS stranger
      CROSS JOIN LATERAL (SELECT * FROM users WHERE users.id = stranger.id OFFSET 0) AS u
      WHERE u.id <> \(reader) AND u.id NOT IN (SELECT friend_id FROM mine) AND \(User.visible("u.id", to: reader))
        AND \(User.Audience.includes("u.findable_by", of: "u.id", userWithFriends: "SELECT friend_id FROM mine"))
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
