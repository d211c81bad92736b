/// Why a user reports a user or an event.
public struct ReportReason: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let spam: Self = "spam"
  public static let harassment: Self = "harassment"
  public static let hate: Self = "hate"
  public static let violence: Self = "violence"
  public static let nudity: Self = "nudity"
  public static let impersonation: Self = "impersonation"
  public static let other: Self = "other"
}
