import Postgres

extension User {
  /// A SQL condition: whether a user sees another user. They see each other unless one of them has blocked the other.
  /// Every query that shows users to users includes it, and a change that concerns two users checks it after locking
  /// both.
  ///
  /// The set of hidden users is read once per statement, for any number of rows.
  ///
  /// - Parameter other: a column or value with a user's id. It must not be NULL.
  static func visible(_ other: SQL, to user: some SQLExpression<User.ID>) -> SQL {
    "\(other) NOT IN (SELECT hidden_id FROM hidden WHERE user_id = \(user))"
  }
}
