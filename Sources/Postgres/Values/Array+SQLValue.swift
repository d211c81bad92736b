/// A one-dimensional array. It reads an array of any type that its elements read: `[Int]` reads `int2[]`, `int4[]` and
/// `int8[]`, and `[Int?]` reads the same with NULLs.
extension Array: SQLExpression, SQLValue where Element: SQLValue {
  public static var sqlType: SQLType {
    SQLType(oid: Element.sqlType.arrayOID, arrayOID: Element.sqlType.arrayOID)
  }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    guard let count = Int32(exactly: count) else { return .unrepresentable }
    bytes.appendInteger(Int32(isEmpty ? 0 : 1))  // dimensions
    bytes.appendInteger(Int32(1))  // may hold NULLs
    bytes.appendInteger(Element.sqlType.oid)
    if isEmpty { return .bytes }
    bytes.appendInteger(count)
    bytes.appendInteger(Int32(1))  // the first index
    for element in self where bytes.appendField(element) == .unrepresentable { return .unrepresentable }
    return .bytes
  }

  @inlinable
  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    guard cell.type == Self.sqlType.oid || cell.isArray else { throw CellMismatch.type }
    let dimensions = try bytes.integer(Int32.self)
    // A value of a composite type begins in the same way, but has a type's oid here.
    guard (0...1).contains(try bytes.integer(at: 4, Int32.self)) else { throw CellMismatch.type }
    let element = try bytes.integer(at: 8, UInt32.self)
    self = []
    if dimensions == 0 {
      // An empty array still has an element type.
      if element == Element.sqlType.oid { return }
      // Decoding an empty cell checks it.
      let nothing = UnsafeRawBufferPointer(rebasing: bytes[..<0])
      do { _ = try Element(cell: SQLCell(type: element, bytes: nothing)) } catch CellMismatch.type {
        throw CellMismatch.type
      } catch {}
      return
    }
    guard dimensions == 1 else { throw CellMismatch.dimensions }
    let total = Int(try bytes.integer(at: 12, Int32.self))
    guard total >= 0 else { throw CellMismatch.malformed }
    var offset = 20
    reserveCapacity(Swift.min(total, bytes.count / Swift.max(4, MemoryLayout<Element>.stride)))
    for _ in 0..<total {
      let field = try bytes.field(at: &offset)
      do {
        append(try Element(cell: SQLCell(type: element, bytes: field)))
      } catch CellMismatch.null where field == nil {
        throw CellMismatch.nullElement
      }
    }
  }
}
