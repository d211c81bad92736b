import Foundation

extension Passwords {
  /// What is wrong with a password that is long enough: it is one of the commonest, or one of the account's own names,
  /// and so among the first to be guessed. Case and width of its characters make no difference.
  ///
  /// - Returns: nil if nothing is.
  static func objection(to password: String, username: String, displayName: String?, email: String?) -> String? {
    let choice = folded(password)
    if common.contains(choice) { return "must not be one of the commonest passwords" }
    let names = [username, displayName, email, email.map { String($0.prefix { $0 != "@" }) }].compactMap { $0 }
    return names.contains { folded($0) == choice } ? "must not be one of the account's names or its address" : nil
  }

  private static func folded(_ text: String) -> String {
    text.precomposedStringWithCompatibilityMapping.lowercased()
  }

  private static let common = Set(
    Resources.commonPasswords.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
}
