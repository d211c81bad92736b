/// A calendar day without a time or zone: PostgreSQL's `date`.
public struct Day: Hashable, Comparable, Sendable {
  /// Days since 1970-01-01.
  public var days: Int

  /// - Parameter days: since 1970-01-01.
  public init(days: Int) {
    self.days = days
  }

  /// Whether the left one is earlier.
  public static func < (left: Day, right: Day) -> Bool {
    left.days < right.days
  }
}

extension Day: SQLValue {
  /// Days between 1970 and 2000, where PostgreSQL's count begins.
  static let epoch = 10_957

  public static var sqlType: SQLType { .date }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let (sum, overflow) = days.subtractingReportingOverflow(Self.epoch)
    guard !overflow, let count = Int32(exactly: sum), count != .max, count != .min else { return .unrepresentable }
    bytes.appendInteger(count)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let count = try cell.bytes(of: .date).integer(Int32.self)
    // 'infinity' and '-infinity' are not days: see `MaybeInfinite`.
    guard count != .max, count != .min else { throw CellMismatch.malformed }
    days = Int(count) + Self.epoch
  }
}

extension Day: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(Day.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}
