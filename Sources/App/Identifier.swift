import Foundation
import Postgres

/// The id of one kind of thing: a `User.ID` cannot be taken for an `Event.ID`. A UUID of version 7, so that ids made
/// later sort later; printed in lower case, read in any.
public struct Identifier<Thing>: Hashable, Comparable, Sendable, RawRepresentable, SQLValue {
  public let rawValue: UUID

  public init(rawValue: UUID) {
    self.rawValue = rawValue
  }

  public init?(_ text: some StringProtocol) {
    guard let uuid = UUID(uuidString: String(text)) else { return nil }
    rawValue = uuid
  }

  /// A fresh one.
  public static func new() -> Identifier {
    var bytes = UUID().uuid
    let milliseconds = UInt64(Timestamp.now().microseconds / 1000)
    withUnsafeMutableBytes(of: &bytes) { bytes in
      for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: milliseconds >> (8 * (5 - index))) }
      bytes[6] = bytes[6] & 0x0f | 0x70
    }
    return Identifier(rawValue: UUID(uuid: bytes))
  }

  /// In PostgreSQL's order of `uuid`, byte by byte: rows are locked in it.
  public static func < (left: Identifier, right: Identifier) -> Bool {
    withUnsafeBytes(of: left.rawValue.uuid) { left in
      withUnsafeBytes(of: right.rawValue.uuid) { right in left.lexicographicallyPrecedes(right) }
    }
  }
}

extension Identifier: CustomStringConvertible {
  public var description: String { rawValue.uuidString.lowercased() }
}
