/// Proves again who the user is, before a risky change. An account without a password, a provider and a verified
/// address needs none.
public enum Reauthentication: Sendable, Hashable {
  /// The account's current password.
  case password(String)
  /// Six digits that were mailed to the account's verified address.
  case code(String)
  /// A token of Apple or Google for an identity that is linked to the account, issued within the last ten minutes, and
  /// the nonce that the app chose for it.
  case idToken(String, nonce: String?)
}

// The members of requests. Routes name some of them differently.
extension Reauthentication {
  var password: String? { if case .password(let text) = self { text } else { nil } }
  var code: String? { if case .code(let digits) = self { digits } else { nil } }
  var idToken: String? { if case .idToken(let token, _) = self { token } else { nil } }
  var nonce: String? { if case .idToken(_, let nonce) = self { nonce } else { nil } }

  /// Nil without a password, a code and a token.
  init?(password: String?, code: String?, idToken: String?, nonce: String?) {
    if let password {
      self = .password(password)
    } else if let code {
      self = .code(code)
    } else if let idToken {
      self = .idToken(idToken, nonce: nonce)
    } else {
      return nil
    }
  }
}
