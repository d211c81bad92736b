import Foundation

/// The id of a thing, such as `Event.ID`. The ids of different things are of different types.
public struct Identifier<Thing>: RawRepresentable, Hashable, Sendable {
  public let rawValue: UUID

  public init(rawValue: UUID) { self.rawValue = rawValue }

  public init(_ uuid: UUID) { self.init(rawValue: uuid) }

  /// In lower case, as the API prints it.
  var wire: String { rawValue.wire }

  /// A new id: a UUID of version 7, as the service wants it for what it creates.
  public init() { self.init(rawValue: .version7()) }
}

extension Identifier: LosslessStringConvertible {
  /// Nil for a text that is no UUID.
  public init?(_ text: String) {
    guard let uuid = UUID(uuidString: text) else { return nil }
    self.init(rawValue: uuid)
  }

  public var description: String { wire }
}

extension Identifier: Codable {
  public init(from decoder: any Decoder) throws {
    self.init(rawValue: try decoder.singleValueContainer().decode(UUID.self))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension Identifier where Thing == Guest {
  /// The id of a guest with an account.
  public init(_ user: User.ID) { self.init(rawValue: user.rawValue) }
}

extension UUID {
  /// In lower case, as the API prints it.
  var wire: String { uuidString.lowercased() }

  /// Random, except for the time at its beginning (RFC 9562). Nothing depends on the time, which may be wrong.
  static func version7(at time: Date = Date()) -> UUID {
    var bytes = UUID().uuid
    let milliseconds = UInt64(max(0, min(time.timeIntervalSince1970 * 1000, 0xffff_ffff_ffff)))
    withUnsafeMutableBytes(of: &bytes) { bytes in
      for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: milliseconds >> (8 * (5 - index))) }
      bytes[6] = bytes[6] & 0x0f | 0x70
    }
    return UUID(uuid: bytes)
  }
}

// The synthesized conformances of this module use these, so that all models have ids in lower case.
extension KeyedEncodingContainer {
  mutating func encode(_ value: UUID, forKey key: Key) throws { try encode(value.wire, forKey: key) }

  mutating func encodeIfPresent(_ value: UUID?, forKey key: Key) throws {
    if let value { try encode(value.wire, forKey: key) }
  }

  mutating func encode(_ value: [UUID], forKey key: Key) throws { try encode(value.map(\.wire), forKey: key) }

  mutating func encodeIfPresent(_ value: [UUID]?, forKey key: Key) throws {
    if let value { try encode(value.map(\.wire), forKey: key) }
  }
}
