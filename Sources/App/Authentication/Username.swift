import Foundation
import Postgres

/// Usernames that the server chooses for people who sign up with a provider.
enum Username {
  /// In characters.
  static let maximumLength = 30

  /// A username that no account has or recently had. It is made from the first text that yields one, with digits
  /// appended if it is taken. Nil if, by bad luck, all candidates are taken.
  static func free(like texts: [String?], in database: some Querying) async throws -> String? {
    let base = texts.compactMap { $0.map(form) }.first { !$0.isEmpty }
    let names = candidates(base ?? "")
    return try await database.value(
      """
      SELECT name FROM unnest(\(names)) WITH ORDINALITY AS candidates (name, place)
      WHERE NOT EXISTS (SELECT 1 FROM users WHERE username_key = name)
        AND NOT EXISTS (\(User.retired("name")))
      ORDER BY place
      LIMIT 1
      """)
  }

  private static func candidates(_ base: String) -> [String] {
    let digits = base.isEmpty ? [6, 7, 8, 9] : [2, 3, 4, 6, 9]
    let name = base.isEmpty ? "user" : base
    let numbered = digits.map { digits in
      let least = Int(pow(10, Double(digits - 1)))
      return String(name.prefix(maximumLength - digits)) + String(Int.random(in: least..<10 * least))
    }
    return base.count >= 3 ? [base] + numbered : numbered
  }

  /// `Éloïse Müller` becomes `eloise.muller`: only lowercase ASCII letters, digits, dots, underscores and hyphens
  /// remain. The result may be too short for a username, or empty.
  static func form(_ text: String) -> String {
    var plain = text.decomposedStringWithCompatibilityMapping
    if plain.unicodeScalars.contains(where: { !$0.isASCII && $0.properties.isAlphabetic }),
      let latin = NSString(string: text).applyingTransform(
        StringTransform(rawValue: "Any-Latin; Latin-ASCII"), reverse: false)
    {
      plain = latin.decomposedStringWithCompatibilityMapping
    }
    var name = ""
    for scalar in plain.lowercased().unicodeScalars {
      switch scalar {
      case "a"..."z", "0"..."9": name.unicodeScalars.append(scalar)
      // One separator between two words, and none at the ends.
      case " ", ".", "_", "-":
        if let last = name.last, last.isLetter || last.isNumber { name.append(scalar == " " ? "." : Character(scalar)) }
      default: break
      }
    }
    name = String(name.prefix(maximumLength))
    while let last = name.last, !last.isLetter, !last.isNumber { name.removeLast() }
    return name
  }
}
