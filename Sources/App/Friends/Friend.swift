import Postgres

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

  /// Ends a friendship on behalf of one of the two. The other is not notified, and invitations stay. Offers to host end,
  /// except to guests. Idempotent: succeeds even if they are not friends.
  ///
  /// - Throws: ``AppError/userNotFound`` if there is no such user.
  static func end(with other: User.ID, by user: User.ID, in change: Change) async throws {
    // The locks keep out a concurrent block, an offer to host, and a rename, which reads the user's friends.
    try await change.lockBoth(user, other, for: .update)
    let results = try await change.pipeline(
      "SELECT 1 WHERE \(User.visible("\(other)", to: user))",
      """
      DELETE FROM friendships WHERE user_a = least(\(user), \(other)) AND user_b = greatest(\(user), \(other))
      RETURNING \(Event.offersHost(between: [user, other])) AS has_offers
      """)
    guard !results[0].isEmpty else { throw AppError.userNotFound }
    guard let ended = results[1].first else { return }
    change.touch(.friends, of: user, other)
    if try ended["has_offers"] { try await Event.withdrawOffers(between: [user, other], in: change) }
  }
}
