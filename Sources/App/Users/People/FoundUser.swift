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

  /// The strangers with all words of a query whom a search compares, of those whom everyone finds and of those whom
  /// friends of friends find, and as many who are like it. If more have a name, it compares any of them, and the one with
  /// exactly this username. Only the index's part of the work grows with the number of people who have the name.
  static let maximumCompared = 200
  /// Each has some thirty keys.
  private static let maximumWords = 8

  /// The ids of some users whose names the index finds. Those whom only friends of friends find take no place of others.
  private static func candidates(_ names: SQL, for reader: User.ID, atMost limit: SQL) -> SQL {
    func some(_ audience: SQL) -> SQL {
      // Each audience has an index of its own.
      """
      (
        SELECT u.id FROM users AS u
        WHERE name_keys(u.search_name) \(names) AND u.findable_by = \(audience)
          AND u.id <> \(reader) AND \(User.visible("u.id", to: reader))
        LIMIT (SELECT \(limit))
      )
      """
    }
    return "\(some("'everyone'")) UNION ALL \(some("'friends-of-friends'"))"
  }

  /// Friends are all compared, and so is a limited number of strangers whom the index finds. As subqueries, the limits
  /// have no value that the planner knows, so that it never prefers to read all users.
  ///
  /// The relationships are read for the people on the page, and for no others.
  ///
  /// - Returns: a query for the columns of ``init(row:)``.
  static func search(_ query: String, for reader: User.ID, atMost limit: Int) -> SQL {
    let fewMatch: SQL = "CASE WHEN count(*) < \(maximumCompared) THEN \(maximumCompared) ELSE 0 END FROM matching"
    return """
      WITH wanted AS MATERIALIZED (
        -- The keys of a word that one typo leaves: shorter ones have too many names.
        SELECT name, words, ARRAY(
          SELECT DISTINCT key
          FROM (SELECT word FROM unnest(words) AS word ORDER BY char_length(word) DESC, word LIMIT 3) AS longest
          CROSS JOIN LATERAL unnest(name_keys(word)) AS key
          WHERE char_length(key) > 2 AND char_length(key) >= char_length(word) - 1
        ) AS keys
        FROM (
          SELECT name, (name_words(name))[:\(maximumWords)] AS words FROM (SELECT folded(\(query)) AS name) AS folded
        ) AS split
      ), mine AS MATERIALIZED (
        SELECT friend_id FROM friends WHERE user_id = \(reader)
      ), matching AS MATERIALIZED (
        \(candidates("@> (SELECT words FROM wanted) AND (SELECT words <> '{}' FROM wanted)", for: reader, atMost: "\(maximumCompared)"))
      ), alike AS MATERIALIZED (
        \(candidates("&& (SELECT keys FROM wanted)", for: reader, atMost: fewMatch))
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
