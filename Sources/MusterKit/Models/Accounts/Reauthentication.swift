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

extension Reauthentication {
  /// The members of a request's body. Routes name the password and the token differently.
  func members(password: String, idToken: String, nonce: String) -> [String: String] {
    switch self {
    case .password(let text): [password: text]
    case .code(let digits): ["code": digits]
    case .idToken(let token, let chosen): chosen.map { [idToken: token, nonce: $0] } ?? [idToken: token]
    }
  }
}
