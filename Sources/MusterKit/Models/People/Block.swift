import Foundation

/// A user whom the caller has blocked.
public struct Block: Codable, Sendable, Hashable {
  public var user: Person
  public var since: Date

  public init(user: Person, since: Date) {
    self.user = user
    self.since = since
  }
}

extension Block: Identifiable {
  public var id: UUID { user.id }
}
