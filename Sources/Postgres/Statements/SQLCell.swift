import Foundation

/// One column of one row in PostgreSQL's binary format. Valid only while it is being decoded.
public struct SQLCell {
  /// The column's type, as in `pg_type.oid`.
  public let type: UInt32
  /// nil is NULL.
  public let bytes: UnsafeRawBufferPointer?
}

extension SQLCell {
  /// Whether the cell may be an array: of a built-in type that some Swift type reads, or of a user-defined type.
  var isArray: Bool {
    switch type {
    case 1000, 1001, 1005, 1007, 1016, 1021, 1022, 1182, 1185, 2951, 3807: true  // as in `SQLType`
    case 1009, 1015, 1014, 1003, 199: true  // of text, varchar, char(n), name, json
    default: type >= 16384
    }
  }

  /// The bytes, if the cell is not NULL and has one of these types.
  func bytes(of one: SQLType, _ other: SQLType? = nil, _ third: SQLType? = nil) throws -> UnsafeRawBufferPointer {
    guard let bytes else { throw CellMismatch.null }
    guard type == one.oid || type == other?.oid || type == third?.oid else { throw CellMismatch.type }
    return bytes
  }
}

extension UnsafeRawBufferPointer {
  func integer<T: FixedWidthInteger>(at offset: Int = 0, _: T.Type = T.self) throws -> T {
    guard offset >= 0, count >= offset + MemoryLayout<T>.size else { throw CellMismatch.malformed }
    return T(bigEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
  }
}

extension [UInt8] {
  mutating func appendInteger(_ value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}
