/// A calendar day without a time or zone: PostgreSQL's `date`.
public struct Day: Hashable, Sendable, SQLValue {
  /// Days since 1970-01-01.
  public var days: Int

  /// - Parameter days: since 1970-01-01.
  public init(days: Int) {
    self.days = days
  }

  public static var sqlType: SQLType { .date }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let (sum, overflow) = days.subtractingReportingOverflow(10_957)
    guard !overflow, let count = Int32(exactly: sum), count != .max, count != .min else { return .unrepresentable }
    bytes.appendInteger(count)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let count = try cell.bytes(of: .date).integer(Int32.self)
    // 'infinity' and '-infinity' are not days.
    guard count != .max, count != .min else { throw CellMismatch.malformed }
    days = Int(count) + 10_957
  }
}
