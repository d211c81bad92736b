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
  /// The answer that a refused one would have replaced.
  var current: Party?
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

/// Why one field of a request is refused.
public struct FieldError: Equatable, Sendable {
  /// The stable word that clients switch on.
  public enum Code: String, Sendable, CaseIterable {
    case required
    case wrongType = "wrong-type"
    /// Text or bytes that are too short or too long.
    case wrongLength = "wrong-length"
    /// A number that is too low or too high, or a list with too many elements.
    case outOfRange = "out-of-range"
    /// Text that is not in the format of the field.
    case badFormat = "bad-format"
    /// A word that is not one of the known ones, or a field that does not go with another.
    case notAllowed = "not-allowed"
    /// A field or query parameter that the request does not have.
    case unknown
    case repeated
    /// A user who is not a friend, or does not exist.
    case notAFriend = "not-a-friend"
    /// People whom a guest wants to bring to an event that does not allow plus-ones.
    case noPlusOnes = "no-plus-ones"
    /// A password that is too easy to guess.
    case weakPassword = "weak-password"
    /// A mailed token that is unknown, used or expired.
    case invalidToken = "invalid-token"
  }

  public let field: String
  public let code: Code
  public let message: String
}
