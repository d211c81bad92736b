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
  static func list(of user: User.ID, page: Page, in database: some Querying) async throws -> List<Friend> {
    try await List.read(
      .friends, of: user, page: page,
      query: Keyset(
        list: .friends, columns: "\(Person.columns("u")), f.since",
        source: "friends AS f JOIN users AS u ON u.id = f.friend_id WHERE f.user_id = \(user)",
        time: "f.since", id: "f.friend_id", order: .descending),
      in: database, item: Friend.init(row:))
  }
}
