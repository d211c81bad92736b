/// A value, or `infinity` or `-infinity`. Without it, an infinite value of a column is an error.
///
///     let end: MaybeInfinite<Timestamp> = try row["ends_at"]
public enum MaybeInfinite<Finite: SQLInfinite>: Sendable {
  /// Before all others.
  case negativeInfinity
  /// A value of the type itself.
  case finite(Finite)
  /// After all others.
  case infinity

  /// The value; nil if it is infinite.
  public var finite: Finite? {
    if case .finite(let value) = self { value } else { nil }
  }
}

extension MaybeInfinite: Equatable where Finite: Equatable {}
extension MaybeInfinite: Hashable where Finite: Hashable {}
extension MaybeInfinite: Comparable where Finite: Comparable {}

extension MaybeInfinite: SQLValue {
  public static var sqlType: SQLType { Finite.sqlType }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    switch self {
    case .negativeInfinity: bytes += Finite.negativeInfinityBytes
    case .infinity: bytes += Finite.infinityBytes
    case .finite(let value): return value.encode(into: &bytes)
    }
    return .bytes
  }

  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes, cell.type == Finite.sqlType.oid else {
      self = .finite(try Finite(cell: cell))
      return
    }
    if bytes.elementsEqual(Finite.infinityBytes) {
      self = .infinity
    } else if bytes.elementsEqual(Finite.negativeInfinityBytes) {
      self = .negativeInfinity
    } else {
      self = .finite(try Finite(cell: cell))
    }
  }
}
