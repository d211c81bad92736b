// Structs with properties of these types can be `Codable`. In JSON, each is a string.

extension Day: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(Day.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}

extension TimeOfDay: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(TimeOfDay.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}

extension LocalTimestamp: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(LocalTimestamp.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}

extension SQLNumeric: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(SQLNumeric.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}

extension Inet: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(Inet.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}

extension JSONDocument: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text { JSONDocument($0) } }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(text) }
}

/// As in ISO 8601, in UTC: `2026-05-01T18:00:00Z`, with microseconds if there are any.
extension Timestamp: Codable {
  public init(from decoder: any Decoder) throws {
    self = try decoder.text { text in
      guard text.last == "Z", let local = LocalTimestamp(String(text.dropLast())) else { return nil }
      return Timestamp(microseconds: local.microseconds)
    }
  }

  public func encode(to encoder: any Encoder) throws {
    try encoder.encode("\(LocalTimestamp(microseconds: microseconds))Z")
  }
}

extension Decoder {
  /// A value that is a string.
  fileprivate func text<Value>(_ parse: (String) -> Value?) throws -> Value {
    let container = try singleValueContainer()
    guard let value = parse(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "Invalid \(Value.self)")
    }
    return value
  }
}

extension Encoder {
  fileprivate func encode(_ text: String) throws {
    var container = singleValueContainer()
    try container.encode(text)
  }
}
