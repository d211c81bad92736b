import Foundation
import Postgres

extension Change {
  /// Locks the users' rows in id order. `.share`: their names will enter another user's list. `.update`: how they look,
  /// or how two of them stand to each other, is about to change.
  ///
  /// - Returns: those that exist.
  @discardableResult
  func lock(_ users: User.ID..., for strength: LockStrength) async throws -> Set<User.ID> {
    try await lock(users: users, for: strength)
  }

  @discardableResult
  func lock(users: [User.ID], for strength: LockStrength) async throws -> Set<User.ID> {
    try takeTurns(at: users, for: strength)
    let rows = try await rows(
      "SELECT id FROM users WHERE id = ANY(\(users)) ORDER BY id \(unescaped: strength.rawValue)")
    return Set(try rows.map { try $0["id"] })
  }

  enum LockStrength: String {
    case share = "FOR SHARE"
    case update = "FOR NO KEY UPDATE"
  }

  /// Takes the advisory locks that stand before the users' rows, in the round trip of the statement that locks the rows,
  /// which comes next.
  ///
  /// Row locks alone are unfair: PostgreSQL lets each new FOR SHARE overtake a FOR NO KEY UPDATE that waits, so that a
  /// flood of friend requests delays the block that would end it. Advisory locks queue in the order of asking: an
  /// exclusive one waits only for those that came before it.
  ///
  /// Two users may have the same key: then one waits for the other, which is harmless. Keys are taken in their own order,
  /// and before all rows, so that no two changes wait for each other crosswise.
  func takeTurns(at users: [User.ID], for strength: LockStrength) throws {
    let keys = Set(users.map(\.turnKey)).sorted()
    switch strength {
    case .update:
      try write("SELECT pg_advisory_xact_lock(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share where keys.count <= Self.maximumTurns:
      try write("SELECT pg_advisory_xact_lock_shared(\(Self.turns), key) FROM unnest(\(keys)) AS key")
    case .share:
      // Only where an exclusive lock is held or asked for. Of those that are not, none waits.
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

  /// The first half of all keys: "must" in ASCII. The migrations' lock is a key of one part, which never meets these.
  private static let turns: Int32 = 0x6d75_7374
  /// A table of locks that all sessions share has room for 64 locks a transaction, by PostgreSQL's default.
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
