import Postgres

extension Change {
  /// Locks the users' rows in id order. `.share`: their names will enter somebody's list. `.update`: how they look, or
  /// how two of them stand to each other, is about to change.
  ///
  /// - Returns: those that exist.
  @discardableResult
  func lock(_ users: User.ID..., for strength: LockStrength) async throws -> Set<User.ID> {
    try await lock(users: users, for: strength)
  }

  @discardableResult
  func lock(users: [User.ID], for strength: LockStrength) async throws -> Set<User.ID> {
    let rows = try await rows(
      "SELECT id FROM users WHERE id = ANY(\(users)) ORDER BY id \(unescaped: strength.rawValue)")
    return Set(try rows.map { try $0["id"] })
  }

  enum LockStrength: String {
    case share = "FOR SHARE"
    case update = "FOR NO KEY UPDATE"
  }
}
