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
