import Postgres

/// Somebody's friend, and since when.
struct Friend: Sendable {
  let person: Person
  let since: Timestamp

  init(row: Row) throws {
    person = try Person(row: row)
    since = try row["since"]
  }

  /// Newest first.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Friend> {
    try await List.read(
      .friends, of: user, page: page,
      query: Keyset(
        list: .friends, columns: "\(Person.columns("u")), page.cursor_time AS since",
        source: "friends AS f WHERE f.user_id = \(user) AND \(User.visible("f.friend_id", to: user))",
        time: "f.since", id: "f.friend_id", order: .descending, join: "JOIN users AS u ON u.id = page.cursor_id"),
      in: database, item: Friend.init(row:))
  }

  /// Ends a friendship, at the wish of one of the two; the other is not told. Invitations stay as they are. It is as
  /// good if they are no friends: who repeats it gets the same answer.
  ///
  /// - Throws: ``AppError/userNotFound`` without such a user.
  static func end(with other: User.ID, by user: User.ID, in change: Change) async throws {
    // No block comes in between, and no new name that would look for its friends.
    try await change.lockBoth(user, other, for: .share)
    let answers = try await change.pipeline(
      "SELECT 1 WHERE \(User.visible("\(other)", to: user))",
      """
      DELETE FROM friendships WHERE user_a = least(\(user), \(other)) AND user_b = greatest(\(user), \(other))
      """)
    guard !answers[0].isEmpty else { throw AppError.userNotFound }
    if answers[1].affected > 0 { change.touch(.friends, of: user, other) }
  }
}
