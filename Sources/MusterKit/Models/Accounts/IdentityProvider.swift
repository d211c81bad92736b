/// Who vouches for a user in place of a password.
public struct IdentityProvider: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let apple: Self = "apple"
  public static let google: Self = "google"
}
