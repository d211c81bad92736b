import Foundation

extension UUID {
  /// In lower case, as the API prints it.
  var wire: String { uuidString.lowercased() }
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
