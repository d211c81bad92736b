/// An error that is reported to the client. Each one is declared next to the code that throws it, as an extension of
/// this type.
public struct AppError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Sendable {
    case malformed, unauthorized, forbidden, notFound, methodNotAllowed, conflict, lostUpdate, tooLarge
    case unsupportedMediaType, invalid, tooManyRequests, unavailable, internalError
  }

  public let kind: Kind
  /// The stable word that clients switch on.
  public let slug: String
  /// A sentence for a developer.
  public let message: String
  public var fields: [FieldError] = []
  /// Seconds after which to try again.
  public var retryAfter: Int?
  public var allow: String?

  public init(_ kind: Kind, _ slug: String, _ message: String, retryAfter: Int? = nil) {
    self.kind = kind
    self.slug = slug
    self.message = message
    self.retryAfter = retryAfter
  }

  /// For logs.
  public var description: String { slug }

  /// All values that parse but break a rule.
  public static func invalid(_ fields: [FieldError]) -> AppError {
    let names = fields.map(\.field).joined(separator: ", ")
    var error = AppError(.invalid, "invalid-fields", "Some fields are not valid: \(names).")
    error.fields = fields
    return error
  }

  static func invalid(_ field: String, _ code: FieldError.Code, _ message: String) -> AppError {
    invalid([FieldError(field: field, code: code, message: message)])
  }
}
