/// PostgreSQL's `interval`: months, days and microseconds, each with its own sign. They are separate, because months
/// and days have no fixed length.
///
/// Two intervals are equal only if all three parts are. PostgreSQL also treats a month as equal to 30 days, and a day
/// to 24 hours.
public struct Interval: Hashable, Codable, Sendable {
  /// Twelve of them are a year.
  public var months: Int32
  /// Whole days.
  public var days: Int32
  /// The rest.
  public var microseconds: Int64

  public init(months: Int32 = 0, days: Int32 = 0, microseconds: Int64 = 0) {
    self.months = months
    self.days = days
    self.microseconds = microseconds
  }

  /// Without months and days. Rounds toward zero to whole microseconds; nil if it is out of range.
  public init?(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000)
    let (sum, isTooFar) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
    guard !isTooLong, !isTooFar else { return nil }
    self.init(microseconds: sum)
  }

  /// The length; nil if there are months or days, which have no fixed length.
  public var duration: Duration? {
    months == 0 && days == 0 ? .microseconds(microseconds) : nil
  }
}

extension Interval: CustomStringConvertible {
  /// As in ISO 8601, such as `P1Y2M3DT4H5M6.5S`; each part has its own sign.
  public var description: String {
    var date = ""
    if months / 12 != 0 { date += "\(months / 12)Y" }
    if months % 12 != 0 { date += "\(months % 12)M" }
    if days != 0 { date += "\(days)D" }
    let (hours, minutes) = (microseconds / 3_600_000_000, microseconds / 60_000_000 % 60)
    let rest = microseconds % 60_000_000
    var time = ""
    if hours != 0 { time += "\(hours)H" }
    if minutes != 0 { time += "\(minutes)M" }
    if rest != 0 || (date + time).isEmpty {
      let fraction = rest % 1_000_000
      time += "\(rest < 0 ? "-" : "")\((rest / 1_000_000).magnitude)"
      if fraction != 0 { time += ".\(String(fraction.magnitude, width: 6))" }
      time += "S"
    }
    return time.isEmpty ? "P\(date)" : "P\(date)T\(time)"
  }
}

extension Interval: SQLValue {
  public static var sqlType: SQLType { .interval }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let start = bytes.count
    bytes.appendInteger(microseconds)
    bytes.appendInteger(days)
    bytes.appendInteger(months)
    return Self.isInfinite(bytes[start...]) ? .unrepresentable : .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .interval)
    // 'infinity' and '-infinity' have no parts: see `MaybeInfinite`.
    guard bytes.count == 16, !Self.isInfinite(bytes) else { throw CellMismatch.malformed }
    self.init(
      months: try bytes.integer(at: 12), days: try bytes.integer(at: 8), microseconds: try bytes.integer(at: 0))
  }

  private static func isInfinite(_ bytes: some Sequence<UInt8>) -> Bool {
    bytes.elementsEqual(infinityBytes) || bytes.elementsEqual(negativeInfinityBytes)
  }
}
