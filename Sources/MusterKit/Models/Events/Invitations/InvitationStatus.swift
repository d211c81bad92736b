/// The state of an invitation.
public struct InvitationStatus: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  /// Not answered yet.
  public static let invited: Self = "invited"
  public static let going: Self = "going"
  public static let maybe: Self = "maybe"
  public static let declined: Self = "declined"
  /// Wants to come, and gets a place when one becomes free.
  public static let waitlisted: Self = "waitlisted"
  /// Wants to come, and waits for approval by a host.
  public static let pending: Self = "pending"
}
