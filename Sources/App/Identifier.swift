import Foundation
import Postgres

/// The id of one kind of thing: a `User.ID` cannot be mistaken for an `Event.ID`. It is a UUID of version 7, printed in
/// lower case and parsed in either case. Clients make some ids, so their order says nothing about time.
public struct Identifier<Thing>: Hashable, Comparable, Sendable, RawRepresentable, SQLValue {
  public let rawValue: UUID

  public init(rawValue: UUID) {
    self.rawValue = rawValue
  }

  /// Thirty-two hexadecimal digits in groups of 8, 4, 4, 4 and 12.
  public init?(_ text: some StringProtocol) {
    let uuid =
      text.utf8.withContiguousStorageIfAvailable(Self.uuid) ?? Array(text.utf8).withUnsafeBufferPointer(Self.uuid)
    guard let uuid else { return nil }
    rawValue = uuid
  }

  private static func uuid(_ text: UnsafeBufferPointer<UInt8>) -> UUID? {
    guard text.count == 36 else { return nil }
    var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    let isWhole = withUnsafeMutableBytes(of: &bytes) { bytes in
      var place = 0
      for index in 0..<16 {
        if index == 4 || index == 6 || index == 8 || index == 10 {
          guard text[place] == UInt8(ascii: "-") else { return false }
          place += 1
        }
        guard let high = hexadecimal(text[place]), let low = hexadecimal(text[place + 1]) else { return false }
        bytes[index] = high << 4 | low
        place += 2
      }
      return true
    }
    return isWhole ? UUID(uuid: bytes) : nil
  }

  private static func hexadecimal(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  public static func new() -> Identifier {
    var bytes = UUID().uuid
    let milliseconds = UInt64(Timestamp.now().microseconds / 1000)
    withUnsafeMutableBytes(of: &bytes) { bytes in
      for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: milliseconds >> (8 * (5 - index))) }
      bytes[6] = bytes[6] & 0x0f | 0x70
    }
    return Identifier(rawValue: UUID(uuid: bytes))
  }

  /// Whether it is a UUID of version 7 (RFC 9562), whatever the time in it.
  var isVersion7: Bool { rawValue.uuid.6 >> 4 == 7 && rawValue.uuid.8 >> 6 == 0b10 }

  /// Byte by byte, in PostgreSQL's order of `uuid`, in which rows are locked.
  public static func < (left: Identifier, right: Identifier) -> Bool {
    withUnsafeBytes(of: left.rawValue.uuid) { left in
      withUnsafeBytes(of: right.rawValue.uuid) { right in left.lexicographicallyPrecedes(right) }
    }
  }
}

extension Identifier: CustomStringConvertible {
  public var description: String { rawValue.uuidString.lowercased() }
}

/// The id of something new.
struct NewID<Thing>: Sendable {
  let value: Identifier<Thing>
  /// Whether the client has made it. It may then have an owner already: the same user, who repeats the request, or
  /// another one.
  let isGiven: Bool

  init(_ given: Identifier<Thing>?) {
    value = given ?? .new()
    isGiven = given != nil
  }
}

/// The ids of things that are gone with an account. They stay taken. Otherwise a request with an id of the client's own
/// could tell whether someone has deleted the account, or has blocked the caller.
enum SpentID {
  enum Kind: String, SQLValue {
    case event
    case friendRequest = "friend-request"
  }

  /// A query of the spent id, with the account that had made it, unless that is gone as well.
  static func finding<Thing>(_ id: Identifier<Thing>, _ kind: Kind) -> SQL {
    "SELECT owner_id FROM spent_ids WHERE id = \(id) AND kind = \(kind)"
  }

  /// - Throws: ``AppError/idTaken`` for a spent id; ``AppError/userNotFound`` for one of the user's own, as if the other
  ///   user had blocked them.
  static func check<Thing>(
    _ id: Identifier<Thing>, _ kind: Kind, by user: User.ID, in database: some Querying
  ) async throws {
    guard let row = try await database.first(finding(id, kind)) else { return }
    throw try (row["owner_id"] as User.ID?) == user ? AppError.userNotFound : .idTaken
  }

  /// A statement that deletes events.
  ///
  /// - Parameter condition: on `events AS e`.
  static func deletingEvents(where condition: SQL) -> SQL {
    """
    WITH gone AS (
      DELETE FROM events AS e WHERE \(condition) RETURNING e.id
    )
    INSERT INTO spent_ids (id, kind) SELECT id, \(Kind.event) FROM gone ON CONFLICT DO NOTHING
    """
  }

  /// A statement to run before an account is deleted, with its friend requests.
  static func spendingRequests(of user: User.ID) -> SQL {
    """
    WITH forgotten AS (
      UPDATE spent_ids SET owner_id = NULL WHERE owner_id = \(user)
    )
    INSERT INTO spent_ids (id, kind, owner_id)
    SELECT id, \(Kind.friendRequest), nullif(sender_id, \(user)) FROM friend_requests
    WHERE sender_id = \(user) OR receiver_id = \(user)
    ON CONFLICT DO NOTHING
    """
  }
}

extension AppError {
  /// The same whatever has the id, so that it does not reveal what.
  static let idTaken = AppError(.conflict, "id-taken", "Something else has this id. Make a new one.")
}

extension UUID {
  /// Sorts before all others, and is never used as an id.
  static let zero = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
}
