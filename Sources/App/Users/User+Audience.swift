import Postgres

extension User {
  /// Whom a user lets reach them, besides their friends. A preference of the user, which only they see.
  enum Audience: String, CaseIterable, Sendable, SQLValue, JSONWritable {
    case everyone
    /// Users with a friend in common.
    case friendsOfFriends = "friends-of-friends"
    case noOne = "no-one"

    /// A SQL condition: whether an audience includes a user who is not a friend.
    ///
    /// - Parameters:
    ///   - audience: a column with the audience of `owner`.
    ///   - friends: a query of the ids of the user's friends.
    static func includes(_ audience: SQL, of owner: SQL, userWithFriends friends: SQL) -> SQL {
      """
      CASE \(audience)
        WHEN 'everyone' THEN true
        WHEN 'friends-of-friends' THEN EXISTS (
          SELECT FROM friends AS theirs WHERE theirs.user_id = \(owner) AND theirs.friend_id IN (\(friends))
        )
        ELSE false
      END
      """
    }
  }

  /// A SQL condition on a `users` row: whether the account's owner has proven an address, or signs in with a provider.
  static func isProven(_ users: SQL) -> SQL {
    """
    (\(users).email_verified_at IS NOT NULL OR EXISTS (SELECT FROM identities AS i WHERE i.user_id = \(users).id))
    """
  }
}
