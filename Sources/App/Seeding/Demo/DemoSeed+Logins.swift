import Postgres

extension DemoSeed {
  /// Whether the demo users can still log in as documented.
  public struct Logins: Sendable {
    /// The first demo user whose username and password have not changed.
    public let working: String?
    /// A sentence for each demo user whose login has changed.
    public let changed: [String]
    /// A sentence for each demo user who was left out, because another account has the username.
    public let leftOut: [String]
  }

  func logins(in dependencies: Dependencies, leftOut: [String] = []) async throws -> Logins {
    let rows = try await dependencies.database.rows(
      "SELECT \(Credentials.columns) FROM users AS u WHERE u.id = ANY(\(people.map(\.user)))")
    let accounts = try rows.map(Credentials.init(row:))
    // Users who were planted together have the same hash, which takes long to check.
    var isPassword: [String: Bool] = [:]
    var working: [String] = []
    var changed: [String] = []
    for person in people {
      guard let account = accounts.first(where: { $0.user == person.user }) else { continue }
      guard account.username.lowercasedASCII == person.username else {
        changed.append("The demo user \(person.username) now has the username \(account.username).")
        continue
      }
      let hash = account.passwordHash ?? ""
      if isPassword[hash] == nil {
        isPassword[hash] = try await dependencies.passwords.verify(Self.password, against: account.passwordHash)
      }
      if isPassword[hash] == true {
        working.append(person.username)
      } else {
        changed.append("The demo user \(person.username) has a different password.")
      }
    }
    return Logins(
      working: working.first, changed: changed,
      leftOut: leftOut.map { "The demo user \($0) is left out: another account has this username." })
  }

  /// Deletes the demo users, accounts that have the e-mail address of one, and the demo events.
  func erase(from database: Database) async throws {
    let rows = try await database.rows(
      """
      SELECT id FROM users WHERE id = ANY(\(people.map(\.user))) OR email_key = ANY(\(people.map(\.email)))
      ORDER BY id
      """)
    for row in rows {
      let user: User.ID = try row["id"]
      try await database.change { try await User.erase(user, by: nil, in: $0) }
    }
    // Events that have other guests are still there.
    let ids = events.map(\.id)
    try await database.change { change in
      try change.write("SELECT id FROM events WHERE id = ANY(\(ids)) ORDER BY id FOR UPDATE")
      change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(ids))")
      change.erase("DELETE FROM events WHERE id = ANY(\(ids))")
    }
  }
}
