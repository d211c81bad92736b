import Foundation

/// The text that identifies a user at a login: a username or an e-mail address. A username cannot contain an @ and an
/// address must, so one of the two at most has this key.
struct Login: Sendable {
  /// The same for all spellings that find one account, and also made of a text that can find none: unknown logins are
  /// slowed down alike.
  let key: String

  init(_ text: String) {
    key = (try? EmailAddress(parsing: text))?.key ?? text.lowercasedASCII
  }
}

extension Fields.Rule where Value == Login {
  /// Not normalized, which would turn some other letters into ASCII letters.
  static var login: Self {
    Self(placeholder: Login("")) { json throws(Fields.Broken) in
      guard case .string(let raw) = json else { throw Fields.Broken.wrongType("a string", json) }
      let text = String(raw.trimmedScalars)
      guard (1...EmailAddress.maximumLength).contains(text.unicodeScalars.count) else {
        throw Fields.Broken(.wrongLength, "must be 1 to \(EmailAddress.maximumLength) characters long")
      }
      return Login(text)
    }
  }
}
