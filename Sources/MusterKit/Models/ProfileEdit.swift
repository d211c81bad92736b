import Foundation

/// A change of the caller's profile. Nil and `.keep` leave a value as it is.
public struct ProfileEdit: Sendable, Hashable {
  /// The old one is reserved for 30 days.
  public var username: String?
  /// The name that others see.
  public var displayName: String?
  /// A text by the user about themselves.
  public var bio: Edit<String>
  /// Takes effect when the user follows the link that is mailed there. Needs `reauthentication`.
  public var email: String?
  /// Who may send the user friend requests.
  public var requestsFrom: Audience?
  /// Who finds the user in searches and recommendations, besides friends.
  public var findableBy: Audience?
  /// Only for a new `email`.
  public var reauthentication: Reauthentication?

  public init(
    username: String? = nil, displayName: String? = nil, bio: Edit<String> = .keep, email: String? = nil,
    requestsFrom: Audience? = nil, findableBy: Audience? = nil, reauthentication: Reauthentication? = nil
  ) {
    self.username = username
    self.displayName = displayName
    self.bio = bio
    self.email = email
    self.requestsFrom = requestsFrom
    self.findableBy = findableBy
    self.reauthentication = reauthentication
  }
}

extension ProfileEdit: Codable {
  private enum CodingKeys: String, CodingKey {
    case username, displayName, bio, email, requestsFrom, findableBy, currentPassword, code, idToken, nonce
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    username = try container.decodeIfPresent(String.self, forKey: .username)
    displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
    bio = try container.decode(Edit<String>.self, forKey: .bio)
    email = try container.decodeIfPresent(String.self, forKey: .email)
    requestsFrom = try container.decodeIfPresent(Audience.self, forKey: .requestsFrom)
    findableBy = try container.decodeIfPresent(Audience.self, forKey: .findableBy)
    reauthentication = Reauthentication(
      password: try container.decodeIfPresent(String.self, forKey: .currentPassword),
      code: try container.decodeIfPresent(String.self, forKey: .code),
      idToken: try container.decodeIfPresent(String.self, forKey: .idToken),
      nonce: try container.decodeIfPresent(String.self, forKey: .nonce))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(username, forKey: .username)
    try container.encodeIfPresent(displayName, forKey: .displayName)
    try container.encode(bio, forKey: .bio)
    try container.encodeIfPresent(email, forKey: .email)
    try container.encodeIfPresent(requestsFrom, forKey: .requestsFrom)
    try container.encodeIfPresent(findableBy, forKey: .findableBy)
    try container.encodeIfPresent(reauthentication?.password, forKey: .currentPassword)
    try container.encodeIfPresent(reauthentication?.code, forKey: .code)
    try container.encodeIfPresent(reauthentication?.idToken, forKey: .idToken)
    try container.encodeIfPresent(reauthentication?.nonce, forKey: .nonce)
  }
}

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
