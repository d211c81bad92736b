import Postgres

/// A user in a list: the fields that everyone who can see the user may see.
struct Person: Sendable {
  let id: User.ID
  let username: String
  let displayName: String
  /// As in ``User/pictureURL``.
  let pictureURL: String?

  /// The columns that `init(row:prefix:)` reads, in its order, of a `users` row under an alias. Each column's name
  /// starts with the prefix.
  static func columns(_ alias: String, prefix: String = "") -> SQL {
    """
    \(unescaped: alias).id AS \(unescaped: prefix)id, \(unescaped: alias).username AS \(unescaped: prefix)username,
    \(unescaped: alias).display_name AS \(unescaped: prefix)display_name,
    \(unescaped: alias).picture_url AS \(unescaped: prefix)picture_url
    """
  }
}

extension Person {
  init(row: Row, prefix: String = "") throws {
    let first = try row.place(of: prefix + "id")
    id = try row[first]
    username = try row[first + 1]
    displayName = try row[first + 2]
    pictureURL = try row[first + 3]
  }
}
