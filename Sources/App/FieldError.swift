public struct FieldError: Equatable, Sendable {
  public let field: String
  public let message: String
}
