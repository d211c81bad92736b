/// How a device gets notifications.
public struct Platform: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let ios: Self = "ios"
  public static let android: Self = "android"
  public static let webhook: Self = "webhook"
  /// Writes to the worker's log, for development.
  public static let log: Self = "log"
}
