/// A field of a request that breaks a rule.
public struct FieldProblem: Sendable, Hashable, Codable {
  /// Such as `title`, `location.latitude`, `inviteeIds[2]`, or the name of a query parameter.
  public var field: String
  /// The word to switch on, such as `required`, `wrong-length` or `not-a-friend`.
  public var code: String
  /// For developers, not for users.
  public var message: String

  public init(field: String, code: String, message: String) {
    self.field = field
    self.code = code
    self.message = message
  }
}
