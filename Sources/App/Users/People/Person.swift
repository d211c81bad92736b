import Postgres

/// A user in a list: the fields that everyone who can see the user may see.
struct Person: Sendable {
  let id: User.ID
  let username: String
  let displayName: String
  /// As in ``User/pictureURL``.
  let pictureURL: String?

  /// The columns of a `users` row under an alias that ``init(row:)`` reads.
  static func columns(_ users: SQL) -> SQL {
    "\(users).id, \(users).username, \(users).display_name, \(users).picture_url"
  }
}

extension Person {
  init(row: Row) throws {
    let first = try row.place(of: "id")
    id = try row[first]
    username = try row[first + 1]
    displayName = try row[first + 2]
    pictureURL = try row[first + 3]
  }
}

/// A person in a column of its own, or in an array.
extension Person: SQLRecord {
  /// - Parameter users: the alias of a `users` row, which may be missing: then the record is NULL.
  static func record(_ users: SQL) -> SQL {
    "CASE WHEN \(users).id IS NOT NULL THEN ROW(\(columns(users))) END"
  }

  init(fields: inout SQLFields) throws {
    id = try fields.next()
    username = try fields.next()
    displayName = try fields.next()
    pictureURL = try fields.next()
  }

  /// Reads the ``columns(_:)`` of a `users` row that may be missing, as after a LEFT JOIN.
  static func orNil(_ fields: inout SQLFields) throws -> Person? {
    guard let id: User.ID = try fields.next() else {
      for _ in 1...3 { _ = try fields.next() as String? }
      return nil
    }
    return Person(
      id: id, username: try fields.next(), displayName: try fields.next(), pictureURL: try fields.next())
  }
}

extension Person {
  /// The minimum similarity of a match. A word of four letters with one typo, or with two letters swapped, has this
  /// much.
  private static let minimumSimilarity = 0.2

  /// Those of some people whom a user sees, in the given order.
  static func these(_ ids: [User.ID], for reader: User.ID, in database: some Querying) async throws -> [Person] {
    try await database.rows(
      """
      SELECT \(columns("u")) FROM users AS u WHERE u.id = ANY(\(ids)) AND \(User.visible("u.id", to: reader))
      ORDER BY array_position(\(ids), u.id)
      """
    ).map { try Person(row: $0) }
  }

  /// People whose username or display name has a part that is similar to `query`, ignoring case, accents and some
  /// typos. Friends come first, then the most similar names. The reader is left out, and so are strangers whose
  /// ``User/Audience`` does not include the reader.
  ///
  /// A person who is less than half as similar as the best match is left out. Otherwise friends who hardly match would
  /// come before strangers who match exactly.
  static func named(
    _ query: String, for reader: User.ID, atMost limit: Int, in database: Database
  ) async throws -> [Person] {
    let results = try await database.slow.send([similaritySetting, search(query, for: reader, atMost: limit)])
    return try results[1].map { try Person(row: $0) }
  }

  /// Sets the minimum similarity at which the index returns a name, for the transaction of a ``search(_:for:atMost:)``.
  static let similaritySetting: SQL =
    "SELECT set_config('pg_trgm.word_similarity_threshold', \(String(minimumSimilarity)), true)"

  /// Strangers come in the order of the index, which then reads only as many as are wanted. For that, its operand must
  /// be a value, so it is a subquery and not a join. Among equally similar parts, the most similar whole names come
  /// first.
  ///
  /// - Returns: a query for the columns of people.
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
    SELECT \(columns("u"))
    FROM ranked AS r
    JOIN users AS u ON u.id = r.id
    WHERE r.similarity >= \(minimumSimilarity) AND r.similarity >= r.best / 2
    ORDER BY r.is_friend DESC, r.similarity DESC, r.whole_similarity DESC, r.id
    LIMIT \(limit)
    """
  }
}

extension Person: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.person(id: id, username: username, displayName: displayName, pictureUrl: PublicURL.absolute(pictureURL))
  }
}
