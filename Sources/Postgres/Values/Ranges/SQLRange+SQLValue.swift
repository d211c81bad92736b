import Foundation

extension SQLRange: SQLValue {
  private enum Flag {
    static var empty: UInt8 { 0x01 }
    static var lowerInclusive: UInt8 { 0x02 }
    static var upperInclusive: UInt8 { 0x04 }
    static var lowerUnbounded: UInt8 { 0x08 }
    static var upperUnbounded: UInt8 { 0x10 }
  }

  public static var sqlType: SQLType { Bound.rangeType }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    guard case .between(let lower, let upper) = self else {
      bytes.append(Flag.empty)
      return .bytes
    }
    let place = bytes.count
    bytes.append(0)
    var flags: UInt8 = 0
    let sides = [
      (lower, Flag.lowerUnbounded, Flag.lowerInclusive), (upper, Flag.upperUnbounded, Flag.upperInclusive),
    ]
    for (edge, unbounded, inclusive) in sides {
      switch edge {
      case .unbounded: flags |= unbounded
      case .inclusive(let bound):
        flags |= inclusive
        guard bytes.appendField(bound) == .bytes else { return .unrepresentable }
      case .exclusive(let bound):
        guard bytes.appendField(bound) == .bytes else { return .unrepresentable }
      }
    }
    bytes[place] = flags
    return .bytes
  }

  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    let isOwn = cell.type == Bound.rangeType.oid
    guard let type = Self.bound(of: cell.type) ?? (isOwn ? Bound.sqlType.oid : nil) else { throw CellMismatch.type }
    let flags = try bytes.integer(UInt8.self)
    if flags & Flag.empty != 0 {
      // An empty range has no bounds, but a type. Decoding an empty cell checks it.
      let nothing = UnsafeRawBufferPointer(rebasing: bytes[..<0])
      do { _ = try Bound(cell: SQLCell(type: type, bytes: nothing)) } catch CellMismatch.type {
        throw CellMismatch.type
      } catch {}
      self = .empty
      return
    }
    var offset = 1
    func edge(_ unbounded: UInt8, _ inclusive: UInt8) throws -> Edge {
      if flags & unbounded != 0 { return .unbounded }
      guard let field = try bytes.field(at: &offset) else { throw CellMismatch.malformed }
      let bound = try Bound(cell: SQLCell(type: type, bytes: field))
      return flags & inclusive != 0 ? .inclusive(bound) : .exclusive(bound)
    }
    let lower = try edge(Flag.lowerUnbounded, Flag.lowerInclusive)
    self = .between(lower, try edge(Flag.upperUnbounded, Flag.upperInclusive))
  }

  /// The type of the bounds of a built-in range type.
  private static func bound(of range: UInt32) -> UInt32? {
    switch range {
    case SQLType.int4range.oid: SQLType.int4.oid
    case SQLType.int8range.oid: SQLType.int8.oid
    case SQLType.numrange.oid: SQLType.numeric.oid
    case SQLType.tsrange.oid: SQLType.timestamp.oid
    case SQLType.tstzrange.oid: SQLType.timestamptz.oid
    case SQLType.daterange.oid: SQLType.date.oid
    default: nil
    }
  }
}
