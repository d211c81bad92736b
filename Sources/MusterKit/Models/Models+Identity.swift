import Foundation

// Items that are known by what they are about.

extension Block: Identifiable {
  public var id: User.ID { user.id }
}

extension Friend: Identifiable {
  public var id: User.ID { user.id }
}

extension HostOffer: Identifiable {
  public var id: User.ID { user.id }
}

extension Invitation: Identifiable {
  public var id: Event.ID { event.id }
}

extension Recommendation: Identifiable {
  public var id: User.ID { user.id }
}

extension User {
  /// The user as lists show them.
  public var person: Person { Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl) }
}

extension FoundUser {
  /// The user as lists show them, for ``Write/sendRequest(to:id:)`` and ``Write/block(_:)``.
  public var person: Person { Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl) }
}

extension PublicProfile {
  /// The user as lists show them.
  public var person: Person { Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl) }
}

extension ShareLink {
  /// The token of a link, for ``LinksAPI/join(using:key:)``. Nil for a URL that is not a share link.
  public static func token(in url: URL) -> String? {
    let parts = url.pathComponents
    return parts.count >= 2 && parts[parts.count - 2] == "e" ? parts.last : nil
  }
}

// What follows from other members if a service is too old to send a member: `x-absent: hand` in the document.

extension Event {
  static func absentHosts(in container: KeyedDecodingContainer<CodingKeys>) throws -> [Person] {
    try container.decodeIfPresent(Person.self, forKey: .creator).map { [$0] } ?? []
  }

  static func absentMyRole(in container: KeyedDecodingContainer<CodingKeys>) throws -> EventRole {
    try container.decode(GuestStatus.self, forKey: .myStatus) == "creator" ? .creator : .guest
  }
}

extension Guest {
  static func absentId(in container: KeyedDecodingContainer<CodingKeys>) throws -> ID {
    ID(try container.decode(Person.self, forKey: .user).id)
  }

  static func absentName(in container: KeyedDecodingContainer<CodingKeys>) throws -> String {
    try container.decodeIfPresent(Person.self, forKey: .user)?.displayName ?? ""
  }
}
