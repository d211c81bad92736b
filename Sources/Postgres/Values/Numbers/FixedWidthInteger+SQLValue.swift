extension FixedWidthInteger where Self: SQLValue {
  @inlinable
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(self)
    return .bytes
  }

  @inlinable
  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .int8, .int4, .int2)
    let wide =
      switch cell.type {
      case SQLType.int2.oid: Int64(try bytes.integer(Int16.self))
      case SQLType.int4.oid: Int64(try bytes.integer(Int32.self))
      default: try bytes.integer(Int64.self)
      }
    guard let value = Self(exactly: wide) else { throw CellMismatch.malformed }
    self = value
  }
}

extension Int: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int64: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int32: SQLValue { public static var sqlType: SQLType { .int4 } }

extension Int16: SQLValue { public static var sqlType: SQLType { .int2 } }
