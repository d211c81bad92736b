import Postgres

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
