import Foundation
import Postgres

extension Change {
  /// Locks the users' rows in id order. Use `.share` if their names will enter another user's list, and `.update` if
  /// their profiles, or the relation between two of them, will change.
  ///
  /// - Returns: the users that exist.
  func lock(_ users: User.ID..., for strength: LockStrength) async throws -> Set<User.ID> {
    try await lock(users: users, for: strength)
  }

  func lock(users: [User.ID], for strength: LockStrength) async throws -> Set<User.ID> {
    try takeTurns(at: users, for: strength)
    return Set(try await rows(Self.locking(users, for: strength)).map { try $0["id"] })
  }

  /// The same for a verb that does not ask which users exist. The lock is sent with the next statement, which sees what
  /// was committed before the lock was taken, and costs no round trip.
  func lockAhead(_ users: User.ID..., for strength: LockStrength) throws {
    try lockAhead(users: users, for: strength)
  }

  func lockAhead(users: [User.ID], for strength: LockStrength) throws {
    try takeTurns(at: users, for: strength)
    try write(Self.locking(users, for: strength))
  }

  private static func locking(_ users: [User.ID], for strength: LockStrength) -> SQL {
    "SELECT id FROM users WHERE id = ANY(\(users)) ORDER BY id \(unescaped: strength.rawValue)"
  }

  enum LockStrength: String {
    case share = "FOR SHARE"
    case update = "FOR NO KEY UPDATE"
  }

  /// Takes the advisory locks that come before the locks of users' rows. They are sent with the next statement, which
  /// locks the rows, and cost no round trip.
  ///
  /// Row locks alone are unfair: PostgreSQL lets each new FOR SHARE overtake a waiting FOR NO KEY UPDATE, so a flood of
  /// friend requests delays the block that would end it. Advisory locks queue in the order of the requests: an
  /// exclusive lock waits only for locks that were requested before it.
  ///
  /// Two users may have the same key. One then waits for the other, which is harmless. Keys are locked in their own
  /// order, and before all rows, so that no two changes deadlock.
  func takeTurns(at users: [User.ID], for strength: LockStrength) throws {
    let keys = Set(users.map(\.turnKey)).sorted()
    switch strength {
    case .update:
      try write("SELECT pg_advisory_xact_lock(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share where keys.count <= Self.maximumTurns:
      try write("SELECT pg_advisory_xact_lock_shared(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share:
      // Only keys whose exclusive lock is held or requested. For the other keys, nothing waits.
      try write(
        """
        SELECT pg_advisory_xact_lock_shared(\(Self.turns), key)
        FROM unnest(\(keys)) AS key
        WHERE key IN (
          SELECT objid::integer FROM pg_locks
          WHERE locktype = 'advisory' AND classid = \(Self.turns)::oid AND mode = 'ExclusiveLock'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        )
        """)
    }
  }

  /// The first half of all keys: "must" in ASCII. The key of the migrations' lock has one part, so it never equals
  /// these.
  private static let turns: Int32 = 0x6d75_7374
  /// PostgreSQL's shared table of locks has room for 64 locks per transaction by default.
  private static let maximumTurns = 32
}

extension User.ID {
  /// 31 of an id's random bits.
  fileprivate var turnKey: Int32 {
    withUnsafeBytes(of: rawValue.uuid) {
      Int32(bigEndian: $0.loadUnaligned(fromByteOffset: 12, as: Int32.self)) & .max
    }
  }
}
