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
