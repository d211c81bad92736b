/// The change of a member that can be empty.
public enum Edit<Value: Sendable>: Sendable {
  /// Keeps the value as it is.
  case keep
  case set(Value)
  /// Removes the value.
  case clear
}

extension Edit: Equatable where Value: Equatable {}
extension Edit: Hashable where Value: Hashable {}

extension Edit: Codable where Value: Codable {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    self = try container.decodeNil() ? .clear : .set(container.decode(Value.self))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if case .set(let value) = self { try container.encode(value) } else { try container.encodeNil() }
  }
}

// The synthesized conformances of this module use these two.
extension KeyedEncodingContainer {
  /// Absent keeps, null clears.
  mutating func encode<Value: Codable & Sendable>(_ edit: Edit<Value>, forKey key: Key) throws {
    switch edit {
    case .keep: break
    case .set(let value): try encode(value, forKey: key)
    case .clear: try encodeNil(forKey: key)
    }
  }
}

extension KeyedDecodingContainer {
  func decode<Value: Codable & Sendable>(_ type: Edit<Value>.Type, forKey key: Key) throws -> Edit<Value> {
    guard contains(key) else { return .keep }
    return try decodeNil(forKey: key) ? .clear : .set(decode(Value.self, forKey: key))
  }
}
