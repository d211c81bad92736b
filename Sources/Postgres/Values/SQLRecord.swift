/// A value that a statement makes with `ROW`, alone or in an array. It can be read but not sent.
///
///     struct Place: SQLRecord {
///       let name: String
///       let floor: Int?
///
///       init(fields: inout SQLFields) throws {
///         name = try fields.next()
///         floor = try fields.next()
///       }
///     }
///     let places: [Place] = try row["places"]  // ARRAY(SELECT ROW(name, floor) FROM places)
public protocol SQLRecord: SQLValue {
  /// Reads all fields, in their order.
  ///
  /// - Throws: ``CellMismatch``, or an error of the type's own.
  init(fields: inout SQLFields) throws
}

extension SQLRecord {
  public static var sqlType: SQLType { .record }

  /// PostgreSQL takes no records as parameters.
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding { .unrepresentable }

  @inlinable
  public init(cell: SQLCell) throws {
    var fields = try SQLFields(of: cell)
    try self.init(fields: &fields)
    try fields.checkIsAtEnd()
  }
}

/// The fields of a record, in their order. Valid only while the record is being decoded.
public struct SQLFields {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 4
  private let count: Int
  /// The number of fields that have been read.
  private var position = 0

  /// - Throws: ``CellMismatch`` if the cell is NULL or no record.
  @usableFromInline init(of cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    guard cell.isRecord else { throw CellMismatch.type }
    self.bytes = bytes
    count = Int(try bytes.integer(Int32.self))
  }

  /// - Throws: ``PostgresError`` if fields are left.
  @usableFromInline func checkIsAtEnd() throws {
    guard position == count else { throw PostgresError(.decoding, "it has \(count) fields") }
    guard offset == bytes.count else { throw CellMismatch.malformed }
  }

  /// Reads the next field.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which gives the field's number, if there are no more fields, or if
  ///   the value does not fit.
  @inlinable public mutating func next<Value: SQLValue>() throws -> Value {
    let cell = try nextCell()
    do {
      return try Value(cell: cell)
    } catch {
      throw self.error(error, cell, Value.self)
    }
  }

  @usableFromInline mutating func nextCell() throws -> SQLCell {
    guard position < count else { throw PostgresError(.decoding, "it has no field \(position + 1)") }
    guard bytes.count - offset >= 8 else { throw CellMismatch.malformed }
    let type = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    let length = Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset + 4, as: Int32.self)))
    position += 1
    offset += 8
    guard length >= 0 else { return SQLCell(type: type, bytes: nil) }
    guard length <= bytes.count - offset else { throw CellMismatch.malformed }
    defer { offset += length }
    return SQLCell(type: type, bytes: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length]))
  }

  /// Why the last field could not be read.
  @usableFromInline func error(_ error: any Error, _ cell: SQLCell, _ wanted: Any.Type) -> PostgresError {
    PostgresError(error, in: "field \(position)", type: cell.type, wanted: wanted)
  }
}
