/// What the caller may do with an event.
public struct EventRole: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let creator: Self = "creator"
  /// A co-host.
  public static let host: Self = "host"
  public static let guest: Self = "guest"
}
