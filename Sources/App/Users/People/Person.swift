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

extension Person: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.person(id: id, username: username, displayName: displayName, pictureUrl: PublicURL.absolute(pictureURL))
  }
}
