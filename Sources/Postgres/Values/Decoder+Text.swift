// Structs with properties of this module's types can be `Codable`. In JSON, each is a string.

extension Decoder {
  /// A value that is a string.
  func text<Value>(_ parse: (String) -> Value?) throws -> Value {
    let container = try singleValueContainer()
    guard let value = parse(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "Invalid \(Value.self)")
    }
    return value
  }
}

extension Encoder {
  func encode(_ text: String) throws {
    var container = singleValueContainer()
    try container.encode(text)
  }
}
