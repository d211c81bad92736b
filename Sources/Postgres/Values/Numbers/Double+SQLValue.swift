extension Double: SQLValue {
  public static var sqlType: SQLType { .float8 }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(bitPattern)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .float8, .float4)
    self =
      cell.type == SQLType.float4.oid
      ? Double(Float(bitPattern: try bytes.integer())) : Double(bitPattern: try bytes.integer())
  }
}

extension Float: SQLValue {
  public static var sqlType: SQLType { .float4 }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(bitPattern)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    self = Float(bitPattern: try cell.bytes(of: .float4).integer())
  }
}
