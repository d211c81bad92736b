import Foundation
import Postgres

/// The id of one kind of thing: a `User.ID` cannot be mistaken for an `Event.ID`. It is a UUID of version 7, so later
/// ids sort later. It is printed in lower case and parsed in either case.
public struct Identifier<Thing>: Hashable, Comparable, Sendable, RawRepresentable, SQLValue {
  public let rawValue: UUID

  public init(rawValue: UUID) {
    self.rawValue = rawValue
  }

  /// Thirty-two hexadecimal digits in groups of 8, 4, 4, 4 and 12.
  public init?(_ text: some StringProtocol) {
    var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    var place = 0
    let isWhole = withUnsafeMutableBytes(of: &bytes) { bytes in
      var digits = 0
      for character in text.utf8 {
        switch (place, character) {
        case (8, UInt8(ascii: "-")), (13, UInt8(ascii: "-")), (18, UInt8(ascii: "-")), (23, UInt8(ascii: "-")): break
        case (8, _), (13, _), (18, _), (23, _), (36..., _): return false
        default:
          guard let digit = Self.hexadecimal(character) else { return false }
          bytes[digits / 2] = bytes[digits / 2] << 4 | digit
          digits += 1
        }
        place += 1
      }
      return place == 36
    }
    guard isWhole else { return nil }
    rawValue = UUID(uuid: bytes)
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

extension UUID {
  /// Sorts before all others, and is never used as an id.
  static let zero = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
}
