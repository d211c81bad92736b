/// A time of day without a zone: PostgreSQL's `time`. From 00:00:00 to 24:00:00, to the microsecond.
public struct TimeOfDay: Hashable, Comparable, Sendable {
  /// Microseconds since midnight.
  public let microseconds: Int64

  static let microsecondsOfDay: Int64 = 86_400_000_000

  /// - Parameter microseconds: since midnight.
  /// - Returns: nil if it is negative or more than a day.
  public init?(microseconds: Int64) {
    guard (0...Self.microsecondsOfDay).contains(microseconds) else { return nil }
    self.microseconds = microseconds
  }

  /// - Parameter microseconds: at least 0, and less than a day.
  init(unchecked microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// A time of the clock; nil if the clock has no such time. 24:00:00 is the end of the day.
  public init?(hour: Int, minute: Int = 0, second: Int = 0, microsecond: Int = 0) {
    guard (0...24).contains(hour), (0..<60).contains(minute), (0..<60).contains(second),
      (0..<1_000_000).contains(microsecond)
    else { return nil }
    self.init(microseconds: Int64((hour * 60 + minute) * 60 + second) * 1_000_000 + Int64(microsecond))
  }

  /// The hour, 0 to 24.
  public var hour: Int { Int(microseconds / 3_600_000_000) }
  /// The minute of the hour.
  public var minute: Int { Int(microseconds / 60_000_000 % 60) }
  /// The second of the minute.
  public var second: Int { Int(microseconds / 1_000_000 % 60) }
  /// The microsecond of the second.
  public var microsecond: Int { Int(microseconds % 1_000_000) }

  /// Whether the left one is earlier.
  public static func < (left: TimeOfDay, right: TimeOfDay) -> Bool {
    left.microseconds < right.microseconds
  }
}

extension TimeOfDay: LosslessStringConvertible {
  /// As in ISO 8601, such as `18:00:00` or `18:00:00.000001`.
  public var description: String {
    let whole = [hour, minute, second].map { String($0.magnitude, width: 2) }.joined(separator: ":")
    return microsecond == 0 ? whole : "\(whole).\(String(microsecond.magnitude, width: 6))"
  }

  /// - Parameter text: as ``description``, with one to six digits after the decimal point.
  public init?(_ text: String) {
    guard text.utf8.count < 20,
      let match = text.wholeMatch(of: /([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?/),
      let hour = Int(match.1), let minute = Int(match.2), let second = Int(match.3)
    else { return nil }
    let digits = match.4 ?? ""
    let fraction = digits + String(repeating: "0", count: 6 - digits.count)
    guard let microsecond = Int(fraction) else { return nil }
    self.init(hour: hour, minute: minute, second: second, microsecond: microsecond)
  }
}

extension TimeOfDay: SQLValue {
  public static var sqlType: SQLType { .time }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(microseconds)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    guard let time = TimeOfDay(microseconds: try cell.bytes(of: .time).integer()) else { throw CellMismatch.malformed }
    self = time
  }
}

extension TimeOfDay: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(TimeOfDay.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}
