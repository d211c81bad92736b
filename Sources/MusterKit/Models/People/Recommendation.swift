import Foundation

/// A friend of friends.
public struct Recommendation: Codable, Sendable, Hashable {
  public var user: Person
  public var mutualFriendCount: Int

  public init(user: Person, mutualFriendCount: Int) {
    self.user = user
    self.mutualFriendCount = mutualFriendCount
  }
}

extension Recommendation: Identifiable {
  public var id: UUID { user.id }
}
