/// The state of a friend request. Only a pending one can change.
public struct FriendRequestStatus: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let pending: Self = "pending"
  public static let accepted: Self = "accepted"
  public static let declined: Self = "declined"
  public static let cancelled: Self = "cancelled"
}
