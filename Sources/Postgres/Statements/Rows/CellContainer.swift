import Foundation

/// One column of a row.
struct CellContainer: SingleValueDecodingContainer {
  let row: Row
  let column: Int
  var codingPath: [any CodingKey] { [] }

  func isNull() throws -> Bool {
    try row.withCell(column, as: Never.self) { $0.bytes == nil }
  }

  func mismatch(_ wanted: Any.Type, _ reason: CellMismatch) -> any Error {
    do {
      return try row.withCell(column, as: wanted) { _ in throw reason }
    } catch {
      return error
    }
  }

  func decodeNil() -> Bool { (try? isNull()) ?? false }
  func decode(_ type: Bool.Type) throws -> Bool { try row[column] }
  func decode(_ type: String.Type) throws -> String { try row[column] }
  func decode(_ type: Double.Type) throws -> Double { try row[column] }
  func decode(_ type: Float.Type) throws -> Float { try row[column] }
  func decode(_ type: Int.Type) throws -> Int { try row[column] }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer() }
  func decode(_ type: Int16.Type) throws -> Int16 { try row[column] }
  func decode(_ type: Int32.Type) throws -> Int32 { try row[column] }
  func decode(_ type: Int64.Type) throws -> Int64 { try row[column] }
  func decode(_ type: UInt.Type) throws -> UInt { try integer() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer() }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer() }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer() }

  /// An integer of a width that PostgreSQL does not have.
  private func integer<Value: FixedWidthInteger>() throws -> Value {
    try row.withCell(column, as: Value.self) { cell in
      guard let value = Value(exactly: try Int64(cell: cell)) else { throw CellMismatch.malformed }
      return value
    }
  }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let isJSON = try row.withCell(column, as: type) { [SQLType.json.oid, SQLType.jsonb.oid].contains($0.type) }
    let value: Any =
      if isJSON, type != JSONDocument.self {
        try row.withCell(column, as: type) { cell in
          try JSONDecoder().decode(type, from: Data(try String(cell: cell).utf8))
        }
      } else if let type = type as? any SQLValue.Type {
        try row.withCell(column, as: type) { try type.init(cell: $0) }
      } else if type == Date.self {
        try row.withCell(column, as: type) { try Timestamp(cell: $0).date }
      } else {
        try type.init(from: CellDecoder(container: self))
      }
    guard let value = value as? Value else { throw mismatch(type, .type) }
    return value
  }
}
