import Postgres

extension User {
  /// What a user has a limited number of.
  enum Limited: Int32 {
    case sessions = 1, friendRequests
  }

  /// Lets a user's changes that add to a limited number happen one after the other, so that none misses what another
  /// counts in. Until the transaction ends; after the users' rows and before all others.
  ///
  /// Not the user's row: changes of others hold that for share all the time.
  static func takingTurns(at limited: Limited, by user: ID) -> SQL {
    "SELECT pg_advisory_xact_lock(\(limited.rawValue), hashtext(\(user)::text))"
  }
}
