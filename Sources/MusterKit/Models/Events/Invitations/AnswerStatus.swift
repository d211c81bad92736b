/// A guest's answer to an invitation.
public struct AnswerStatus: WireValue {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public static let going: Self = "going"
  public static let maybe: Self = "maybe"
  public static let declined: Self = "declined"
}
