import Foundation

/// An account, as its owner sees it.
public struct User: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var username: String
  public var displayName: String
  public var bio: String?
  /// Names one picture forever, and needs no token.
  public var pictureUrl: URL?
  /// Nil if Apple or Google gave none.
  public var email: String?
  public var emailVerified: Bool
  /// The requested address. It becomes `email` when the user follows the mailed link.
  public var pendingEmail: String?
  /// Whether the user can log in with a password.
  public var hasPassword: Bool
  /// The providers that the user can log in with.
  public var identities: [IdentityProvider]
  /// Who may send the user friend requests. Nil: the service is older than this setting.
  public var requestsFrom: Audience?
  /// Who finds the user in searches and recommendations, besides friends. Nil: the service is older than this setting.
  public var findableBy: Audience?
  public var createdAt: Date
  /// The stamp of the collection `profile`.
  public var timestamp: Stamp?

  public init(
    id: UUID, username: String, displayName: String, bio: String? = nil, pictureUrl: URL? = nil, email: String? = nil,
    emailVerified: Bool = false, pendingEmail: String? = nil, hasPassword: Bool = true,
    identities: [IdentityProvider] = [], requestsFrom: Audience? = .everyone, findableBy: Audience? = .everyone,
    createdAt: Date, timestamp: Stamp? = nil
  ) {
    self.id = id
    self.username = username
    self.displayName = displayName
    self.bio = bio
    self.pictureUrl = pictureUrl
    self.email = email
    self.emailVerified = emailVerified
    self.pendingEmail = pendingEmail
    self.hasPassword = hasPassword
    self.identities = identities
    self.requestsFrom = requestsFrom
    self.findableBy = findableBy
    self.createdAt = createdAt
    self.timestamp = timestamp
  }
}

extension User {
  /// The user as lists show them.
  public var person: Person { Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl) }
}
