/// The state of an event.
public struct EventStatus: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let scheduled: Self = "scheduled"
  /// No longer changes.
  public static let cancelled: Self = "cancelled"
}
