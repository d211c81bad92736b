import Foundation

/// Which passwords an account may have: their length, and the words that they must not be. Everything that clients read
/// about them comes from here.
extension Passwords {
  /// In characters, after normalization.
  static let length = 8...256
  /// Enough for characters of four bytes, or of two scalars.
  static let maximumBytes = 8 * length.upperBound

  /// The account that a password is for.
  struct Owner: Sendable {
    let username: String
    let displayName: String?
    let email: String?
  }

  /// A rule about a password that is long enough.
  private struct Rule: Sendable {
    let message: String
    /// - Parameter password: folded, as the words that it is compared with must be.
    let forbids: @Sendable (_ password: String, Owner) -> Bool
  }

  private static let rules = [
    Rule(message: "must not be one of the most common passwords") { password, _ in common.contains(password) },
    // Guessed first.
    Rule(
      message: "must not be the account's username, display name or e-mail address, nor the part before the @"
    ) { password, owner in
      [owner.username, owner.displayName, owner.email, owner.email.map { String($0.prefix { $0 != "@" }) }]
        .contains { $0.map(folded) == password }
    },
  ]

  /// - Parameter password: is long enough.
  /// - Returns: the rule that the password breaks, or nil.
  static func objection(to password: String, of owner: Owner) -> String? {
    let choice = folded(password)
    return rules.first { $0.forbids(choice, owner) }?.message
  }

  /// Without case and character width.
  private static func folded(_ text: String) -> String {
    text.precomposedStringWithCompatibilityMapping.lowercased()
  }

  private static let common = Set(
    Resources.commonPasswords.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
}

extension Fields.Rule where Value == String {
  /// A new password.
  static var password: Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      let password = try anyPassword.read(json)
      let length = Passwords.length
      guard length.contains(password.precomposedStringWithCanonicalMapping.unicodeScalars.count) else {
        throw Fields.Broken(.wrongLength, "must be \(length.lowerBound) to \(length.upperBound) characters long")
      }
      return password
    }
  }

  /// Not trimmed: spaces count like other characters.
  static var anyPassword: Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard text.utf8.count <= Passwords.maximumBytes else {
        throw Fields.Broken(.wrongLength, "must be at most \(Passwords.maximumBytes) bytes long")
      }
      guard !text.hasLongRunOfMarks else { throw Fields.Broken(.badFormat, String.markRule) }
      return text
    }
  }
}
