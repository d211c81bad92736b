/// Whom a user lets reach them, besides their friends.
public struct Audience: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let everyone: Self = "everyone"
  /// Users with a friend in common.
  public static let friendsOfFriends: Self = "friends-of-friends"
  public static let noOne: Self = "no-one"
}
