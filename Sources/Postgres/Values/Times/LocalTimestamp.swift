/// A day and a time of day without a zone: PostgreSQL's `timestamp`. It is what a clock on the wall shows, and no point
/// in time: for that, see ``Timestamp``.
public struct LocalTimestamp: Hashable, Comparable, Sendable {
  /// Microseconds since 1970-01-01 00:00:00 on the same clock.
  public var microseconds: Int64

  /// - Parameter microseconds: since 1970-01-01 00:00:00.
  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// A time on a day; nil if it is out of range.
  public init?(_ day: Day, _ time: TimeOfDay) {
    let (start, isTooLong) = Int64(day.days).multipliedReportingOverflow(by: TimeOfDay.microsecondsOfDay)
    let (sum, isTooFar) = start.addingReportingOverflow(time.microseconds)
    guard !isTooLong, !isTooFar else { return nil }
    microseconds = sum
  }

  /// The day.
  public var day: Day {
    let (days, rest) = microseconds.quotientAndRemainder(dividingBy: TimeOfDay.microsecondsOfDay)
    return Day(days: Int(rest < 0 ? days - 1 : days))
  }

  /// The time of the day.
  public var time: TimeOfDay {
    let rest = microseconds % TimeOfDay.microsecondsOfDay
    return TimeOfDay(unchecked: rest < 0 ? rest + TimeOfDay.microsecondsOfDay : rest)
  }

  /// Whether the left one is earlier.
  public static func < (left: LocalTimestamp, right: LocalTimestamp) -> Bool {
    left.microseconds < right.microseconds
  }
}

extension LocalTimestamp: LosslessStringConvertible {
  /// As in ISO 8601, such as `2026-05-01T18:00:00`. For years before 0 and after 9999, see ``Day``.
  public var description: String { "\(day)T\(time)" }

  /// - Parameter text: as ``description``.
  public init?(_ text: String) {
    let parts = text.split(separator: "T", omittingEmptySubsequences: false)
    guard parts.count == 2, let day = Day(String(parts[0])), let time = TimeOfDay(String(parts[1])) else { return nil }
    self.init(day, time)
  }
}

extension LocalTimestamp: SQLValue {
  public static var sqlType: SQLType { .timestamp }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let (value, overflow) = microseconds.subtractingReportingOverflow(Timestamp.epoch)
    guard !overflow, value != .min else { return .unrepresentable }
    bytes.appendInteger(value)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let value = try cell.bytes(of: .timestamp).integer(Int64.self)
    // 'infinity' and '-infinity' are not times: see `MaybeInfinite`.
    let (sum, overflow) = value.addingReportingOverflow(Timestamp.epoch)
    guard !overflow, value != .min else { throw CellMismatch.malformed }
    microseconds = sum
  }
}

extension LocalTimestamp: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(LocalTimestamp.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}
