/// `creator`, `host` for a co-host, or the state of the caller's invitation.
public struct MyStatus: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let creator: Self = "creator"
  public static let host: Self = "host"
  public static let invited: Self = "invited"
  public static let going: Self = "going"
  public static let maybe: Self = "maybe"
  public static let declined: Self = "declined"
  public static let waitlisted: Self = "waitlisted"
  public static let pending: Self = "pending"
}
