import Postgres

extension User {
  /// What a user has a limited number of.
  enum Limited: Int32 {
    case sessions = 1, friendRequests
  }

  /// Makes a user's changes that add to a limited number happen one after the other, so that each counts what the ones
  /// before it have added. A lock that ends with the transaction, taken before the rows that are counted.
  ///
  /// Not the lock of the user's row: that would wait for all changes that hold it for share.
  static func takingTurns(at limited: Limited, by user: ID) -> SQL {
    "SELECT pg_advisory_xact_lock(\(limited.rawValue), hashtext(\(user)::text))"
  }
}
