/// What a notification is about. Show the `message` of a type that you do not know.
public struct NotificationType: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let friendRequest: Self = "friend-request"
  public static let friendAccepted: Self = "friend-accepted"
  public static let eventInvited: Self = "event-invited"
  public static let eventUpdated: Self = "event-updated"
  public static let eventCancelled: Self = "event-cancelled"
  public static let invitationWithdrawn: Self = "invitation-withdrawn"
  public static let invitationAnswered: Self = "invitation-answered"
  public static let waitlistPromoted: Self = "waitlist-promoted"
  public static let eventReminder: Self = "event-reminder"
  public static let hostOffered: Self = "host-offered"
  public static let hostAdded: Self = "host-added"
  public static let answerMerged: Self = "answer-merged"
  public static let answerProposed: Self = "answer-proposed"
  public static let answerSet: Self = "answer-set"
  public static let answerReminder: Self = "answer-reminder"
  public static let accountClaimed: Self = "account-claimed"
  public static let sessionRevoked: Self = "session-revoked"
}
