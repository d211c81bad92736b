import Foundation

/// A change of the caller's profile. Nil and `.keep` leave a value as it is.
public struct ProfileEdit: Sendable, Hashable {
  public var username: String?
  public var displayName: String?
  public var bio: Edit<String>
  /// Takes effect when the user follows the link that is mailed there. Needs `reauthentication`.
  public var email: String?
  /// Who may send the user friend requests.
  public var requestsFrom: Audience?
  /// Who finds the user in searches and recommendations, besides friends.
  public var findableBy: Audience?
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
    if let password = try container.decodeIfPresent(String.self, forKey: .currentPassword) {
      reauthentication = .password(password)
    } else if let code = try container.decodeIfPresent(String.self, forKey: .code) {
      reauthentication = .code(code)
    } else if let token = try container.decodeIfPresent(String.self, forKey: .idToken) {
      reauthentication = .idToken(token, nonce: try container.decodeIfPresent(String.self, forKey: .nonce))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(username, forKey: .username)
    try container.encodeIfPresent(displayName, forKey: .displayName)
    try container.encode(bio, forKey: .bio)
    try container.encodeIfPresent(email, forKey: .email)
    try container.encodeIfPresent(requestsFrom, forKey: .requestsFrom)
    try container.encodeIfPresent(findableBy, forKey: .findableBy)
    switch reauthentication {
    case nil: break
    case .password(let password): try container.encode(password, forKey: .currentPassword)
    case .code(let code): try container.encode(code, forKey: .code)
    case .idToken(let token, let nonce):
      try container.encode(token, forKey: .idToken)
      try container.encodeIfPresent(nonce, forKey: .nonce)
    }
  }
}
