import Foundation

/// A point in time with the microsecond precision of PostgreSQL's `timestamptz`, stored as an integer. A `Date` is a
/// floating-point number and cannot reliably distinguish neighboring microseconds.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Microseconds since 1970-01-01T00:00:00Z.
  public var microseconds: Int64

  /// - Parameter microseconds: since 1970-01-01T00:00:00Z.
  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// Rounds to the nearest microsecond and clamps dates that are out of range.
  public init(_ date: Date) {
    let exact = (date.timeIntervalSince1970 * 1_000_000).rounded()
    microseconds = Int64(exactly: exact) ?? (exact > 0 ? .max : .min)
  }

  /// The time on this machine's clock, to the microsecond. The database's clock may differ.
  public static func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
  }

  /// Whether the left one is earlier.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.microseconds < right.microseconds
  }

  /// This many seconds later, or earlier if the number is negative. Clamps results that are out of range.
  public func adding(seconds: Int) -> Timestamp {
    let (span, isTooLong) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000)
    let (sum, isTooFar) = microseconds.addingReportingOverflow(span)
    return Timestamp(microseconds: isTooLong || isTooFar ? (seconds > 0 ? .max : .min) : sum)
  }

  /// As a `Date`, to about the microsecond.
  public var date: Date {
    Date(timeIntervalSince1970: Double(microseconds) / 1_000_000)
  }
}

extension Timestamp: SQLValue {
  /// Microseconds between 1970 and 2000, where PostgreSQL's count begins.
  static let epoch: Int64 = 946_684_800_000_000

  public static var sqlType: SQLType { .timestamptz }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let (value, overflow) = microseconds.subtractingReportingOverflow(Self.epoch)
    guard !overflow, value != .min else { return .unrepresentable }
    bytes.appendInteger(value)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let (value, overflow) = try cell.bytes(of: .timestamptz).integer(Int64.self).addingReportingOverflow(Self.epoch)
    // 'infinity' is the greatest integer. Neither it nor '-infinity' fits this scale.
    guard !overflow, value != .min + Self.epoch else { throw CellMismatch.malformed }
    microseconds = value
  }
}
