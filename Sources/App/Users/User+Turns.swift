import Postgres

extension User {
  /// Things with a limited number per user.
  enum Limited: Int32 {
    case sessions = 1, friendRequests, reports
  }

  /// Serializes a user's changes that add to a limited number, so that each counts what the ones before it have added.
  /// The lock ends with the transaction. Take it before the rows that are counted.
  ///
  /// This is not the lock of the user's row, which would wait for all changes that hold it for share.
  static func takingTurns(at limited: Limited, by user: ID) -> SQL {
    "SELECT pg_advisory_xact_lock(\(limited.rawValue), hashtext(\(user)::text))"
  }
}
