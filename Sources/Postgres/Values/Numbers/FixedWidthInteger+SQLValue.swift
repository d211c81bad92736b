extension FixedWidthInteger where Self: SQLValue {
  @inlinable
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(self)
    return .bytes
  }

  @inlinable
  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    let wide =
      switch cell.type {
      case 20: try bytes.integer(Int64.self)  // as in `SQLType`
      case 21: Int64(try bytes.integer(Int16.self))
      case 23: Int64(try bytes.integer(Int32.self))
      default: throw CellMismatch.type
      }
    guard let value = Self(exactly: wide) else { throw CellMismatch.malformed }
    self = value
  }
}

extension Int: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int64: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int32: SQLValue { public static var sqlType: SQLType { .int4 } }

extension Int16: SQLValue { public static var sqlType: SQLType { .int2 } }
