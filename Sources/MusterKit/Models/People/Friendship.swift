/// The relationship of another user to the caller.
public struct Friendship: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let none: Self = "none"
  public static let friends: Self = "friends"
  /// The caller has sent a request to this user.
  public static let requested: Self = "requested"
  /// This user has sent a request to the caller.
  public static let requesting: Self = "requesting"
}
