import Foundation

/// Any JSON value. Keeps members that the models do not know.
public enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case integer(Int)
  case double(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// The member of an object; nil if this is not an object or has no such member.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members[name]
  }

  /// The text of a string; nil for all other values.
  public var string: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  /// Decodes a model from this value.
  ///
  /// - Throws: `DecodingError`
  public func decode<T: Decodable>(as type: T.Type = T.self) throws -> T {
    try JSONDecoder.muster().decode(type, from: JSONEncoder.muster().encode(self))
  }

  /// The JSON of a model.
  ///
  /// - Throws: `EncodingError`
  public init(encoding value: some Encodable) throws {
    self = try JSONDecoder.muster().decode(JSONValue.self, from: JSONEncoder.muster().encode(value))
  }
}

extension JSONValue: Codable {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let text = try? container.decode(String.self) {
      self = .string(text)
    } else if let members = try? container.decode([String: JSONValue].self) {
      self = .object(members)
    } else if let items = try? container.decode([JSONValue].self) {
      self = .array(items)
    } else if let bool = try? container.decode(Bool.self) {
      self = .bool(bool)
    } else if let number = try? container.decode(Int.self) {
      self = .integer(number)
    } else {
      self = .double(try container.decode(Double.self))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

/// A word of the API, such as a status. Later releases may add more. Values that this release does not know also
/// decode: show them without actions.
public protocol WireValue: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
where RawValue == String {
  init(rawValue: String)
}

extension WireValue {
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var description: String { rawValue }
}
