import Foundation

/// A friend of the caller.
public struct Friend: Codable, Sendable, Hashable {
  public var user: Person
  public var since: Date

  public init(user: Person, since: Date) {
    self.user = user
    self.since = since
  }
}

extension Friend: Identifiable {
  public var id: UUID { user.id }
}
