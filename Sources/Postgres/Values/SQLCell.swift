/// One column of one row in PostgreSQL's binary format. Valid only while it is being decoded.
public struct SQLCell {
  /// The column's type, as in `pg_type.oid`.
  public let type: UInt32
  /// nil is NULL.
  public let bytes: UnsafeRawBufferPointer?

  @usableFromInline
  init(type: UInt32, bytes: UnsafeRawBufferPointer?) {
    self.type = type
    self.bytes = bytes
  }
}

extension SQLCell {
  /// Whether the cell may be a composite value: of `ROW`, or of a user-defined type.
  var isRecord: Bool { type == SQLType.record.oid || type >= 16384 }

  /// Whether the cell may be an array: of a built-in type that some Swift type reads, or of a user-defined type.
  @usableFromInline var isArray: Bool {
    switch type {
    case 1000, 1001, 1005, 1007, 1016, 1021, 1022, 1185, 2951, 3807: true  // as in `SQLType`
    case 1009, 1015, 1014, 1003, 199, 2287: true  // of text, varchar, char(n), name, json, record
    default: type >= 16384
    }
  }

  /// The bytes, if the cell is not NULL and has one of these types.
  @usableFromInline
  func bytes(of one: SQLType, _ other: SQLType? = nil) throws -> UnsafeRawBufferPointer {
    guard let bytes else { throw CellMismatch.null }
    guard type == one.oid || type == other?.oid else { throw CellMismatch.type }
    return bytes
  }
}

extension UnsafeRawBufferPointer {
  @inlinable
  func integer<T: FixedWidthInteger>(at offset: Int = 0, _: T.Type = T.self) throws -> T {
    guard offset >= 0, count >= offset + MemoryLayout<T>.size else { throw CellMismatch.malformed }
    return T(bigEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
  }

  /// Bytes with their length in front; nil for NULL. Moves the offset behind them.
  @usableFromInline
  func field(at offset: inout Int) throws -> UnsafeRawBufferPointer? {
    let length = Int(try integer(at: offset, Int32.self))
    offset += 4
    guard length >= 0 else { return nil }
    guard length <= count - offset else { throw CellMismatch.malformed }
    defer { offset += length }
    return UnsafeRawBufferPointer(rebasing: self[offset..<offset + length])
  }
}

extension [UInt8] {
  @inlinable
  mutating func appendInteger(_ value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }

  /// Appends a value with its length in front.
  mutating func appendField(_ value: some SQLValue) -> SQLEncoding {
    let place = count
    appendInteger(Int32(-1))
    let encoding = value.encode(into: &self)
    guard encoding == .bytes else { return encoding }
    guard let length = Int32(exactly: count - place - 4) else { return .unrepresentable }
    Swift.withUnsafeBytes(of: length.bigEndian) { replaceSubrange(place..<place + 4, with: $0) }
    return .bytes
  }
}
