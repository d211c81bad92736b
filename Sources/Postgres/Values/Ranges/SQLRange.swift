/// A range, which may be empty, or unbounded on either side:
///
///     let booked: SQLRange<Timestamp> = try row["booked"]
///     try await database.rows("SELECT room FROM bookings WHERE booked && \(SQLRange(start..<end))")
///
/// The server returns ranges of whole numbers and days with an inclusive lower bound and an exclusive upper bound,
/// however they were written.
public enum SQLRange<Bound: SQLRangeBound>: Sendable {
  /// One end of a range.
  public enum Edge: Sendable {
    case unbounded, inclusive(Bound), exclusive(Bound)
  }

  /// Contains nothing.
  case empty
  /// Contains the values between two edges.
  case between(Edge, Edge)

  /// Contains everything.
  public static var unbounded: SQLRange { .between(.unbounded, .unbounded) }
}

extension SQLRange.Edge: Equatable where Bound: Equatable {}
extension SQLRange.Edge: Hashable where Bound: Hashable {}
extension SQLRange: Equatable where Bound: Equatable {}
extension SQLRange: Hashable where Bound: Hashable {}

extension SQLRange where Bound: Comparable {
  /// `lower..<upper`. PostgreSQL treats it as empty if both are equal.
  public init(_ range: Range<Bound>) {
    self = range.isEmpty ? .empty : .between(.inclusive(range.lowerBound), .exclusive(range.upperBound))
  }

  /// `lower...upper`
  public init(_ range: ClosedRange<Bound>) {
    self = .between(.inclusive(range.lowerBound), .inclusive(range.upperBound))
  }

  /// `lower...`
  public init(_ range: PartialRangeFrom<Bound>) {
    self = .between(.inclusive(range.lowerBound), .unbounded)
  }

  /// `..<upper`
  public init(_ range: PartialRangeUpTo<Bound>) {
    self = .between(.unbounded, .exclusive(range.upperBound))
  }

  /// `...upper`
  public init(_ range: PartialRangeThrough<Bound>) {
    self = .between(.unbounded, .inclusive(range.upperBound))
  }

  /// Whether the value is in the range.
  public func contains(_ value: Bound) -> Bool {
    guard case .between(let lower, let upper) = self else { return false }
    let isAbove =
      switch lower {
      case .unbounded: true
      case .inclusive(let bound): value >= bound
      case .exclusive(let bound): value > bound
      }
    let isBelow =
      switch upper {
      case .unbounded: true
      case .inclusive(let bound): value <= bound
      case .exclusive(let bound): value < bound
      }
    return isAbove && isBelow
  }
}
