/// Which of Apple's push services has the device's token.
public struct PushEnvironment: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let production: Self = "production"
  public static let sandbox: Self = "sandbox"
}
