import Foundation

extension JSONDecoder {
  /// A decoder for the API's JSON. Takes times with whole seconds and with fractions.
  public static func muster() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .custom { decoder in
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      guard let date = WireTime.date(text) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is not a time.")
      }
      return date
    }
    return decoder
  }
}

extension JSONEncoder {
  /// An encoder for the API's JSON: times in UTC with whole seconds, members in alphabetical order.
  public static func muster() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { date, encoder in
      var container = encoder.singleValueContainer()
      try container.encode(WireTime.text(date))
    }
    return encoder
  }
}

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
