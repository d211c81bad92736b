import Foundation

extension Passwords {
  /// Checks a password that is long enough. It must not be one of the most common ones, nor one of the account's own
  /// names, because those are guessed first. Ignores case and character width.
  ///
  /// - Returns: the rule that the password breaks, or nil.
  static func objection(to password: String, username: String, displayName: String?, email: String?) -> String? {
    let choice = folded(password)
    if common.contains(choice) { return "must not be one of the most common passwords" }
    let names = [username, displayName, email, email.map { String($0.prefix { $0 != "@" }) }].compactMap { $0 }
    return names.contains { folded($0) == choice }
      ? "must not be the account's username, display name or e-mail address, nor the part before the @" : nil
  }

  private static func folded(_ text: String) -> String {
    text.precomposedStringWithCompatibilityMapping.lowercased()
  }

  private static let common = Set(
    Resources.commonPasswords.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
}
