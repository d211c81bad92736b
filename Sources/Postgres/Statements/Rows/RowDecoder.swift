import Foundation

extension Row {
  /// The row as a `Decodable` type. Each property is read from the column of its name:
  ///
  ///     struct Event: Decodable {
  ///       let id: UUID
  ///       let title: String
  ///       let startTime: Timestamp?
  ///     }
  ///     let rows = try await database.rows("SELECT id, title, start_time FROM events")
  ///     let events = try rows.decode(Event.self, names: .snakeCase)
  ///
  /// A property may have any type that is a ``SQLValue``, `Date`, an integer of any width, an enumeration with such a
  /// raw value, or, for a column of JSON, any `Decodable` type. A missing column is nil for an optional property.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column; or an error of the type's own
  ///   `init(from:)`.
  public func decode<Value: Decodable>(_ type: Value.Type, names: ColumnNames = .same) throws -> Value {
    if type is any SQLValue.Type, result.names.count == 1 {
      return try CellContainer(row: self, column: 0).decode(type)
    }
    return try Value(from: RowDecoder(self, names))
  }
}

extension Rows {
  /// Each row as a `Decodable` type: see ``Row/decode(_:names:)``.
  public func decode<Value: Decodable>(_ type: Value.Type, names: ColumnNames = .same) throws -> [Value] {
    try map { try $0.decode(type, names: names) }
  }
}

/// Decodes a whole row.
struct RowDecoder: Decoder {
  let row: Row
  let names: ColumnNames
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ row: Row, _ names: ColumnNames) {
    self.row = row
    self.names = names
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(RowContainer(row: row, names: names))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    throw PostgresError(.decoding, "a row cannot be decoded as an array: decode its rows one by one")
  }

  /// For a type that is a single value, and a row that has a single column.
  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    guard row.result.names.count == 1 else {
      throw PostgresError(.decoding, "a row of \(row.result.names.count) columns cannot be decoded as a single value")
    }
    return CellContainer(row: row, column: 0)
  }
}

/// The columns of a row by the names of properties.
private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let row: Row
  let names: ColumnNames
  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { row.result.names.compactMap { Key(stringValue: $0) } }

  private func cell(_ key: Key) throws -> CellContainer {
    CellContainer(row: row, column: try row.place(of: names.column(for: key.stringValue)))
  }

  func contains(_ key: Key) -> Bool {
    row.result.place(of: names.column(for: key.stringValue)) != nil
  }

  func decodeNil(forKey key: Key) throws -> Bool { try cell(key).isNull() }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try cell(key).decode(type) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try cell(key).decode(type) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try cell(key).decode(type) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try cell(key).decode(type) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try cell(key).decode(type) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try cell(key).decode(type) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try cell(key).decode(type) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try cell(key).decode(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try cell(key).decode(type) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try cell(key).decode(type) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try cell(key).decode(type) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try cell(key).decode(type) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try cell(key).decode(type) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try cell(key).decode(type) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try cell(key).decode(type) }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    throw PostgresError(.decoding, "column \"\(names.column(for: key.stringValue))\" has no parts with names")
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw PostgresError(.decoding, "column \"\(names.column(for: key.stringValue))\" has no parts")
  }

  func superDecoder() throws -> any Decoder { RowDecoder(row, names) }
  func superDecoder(forKey key: Key) throws -> any Decoder { CellDecoder(container: try cell(key)) }
}
