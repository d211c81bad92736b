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

extension ShareLink {
  /// The token of a link, for ``LinksAPI/join(using:key:)``. Nil for a URL that is not a share link.
  public static func token(in url: URL) -> String? {
    let parts = url.pathComponents
    return parts.count >= 2 && parts[parts.count - 2] == "e" ? parts.last : nil
  }
}
