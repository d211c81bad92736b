import Foundation

/// A user, as other users see them.
public struct PublicProfile: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var username: String
  public var displayName: String
  public var bio: String?
  public var pictureUrl: URL?
  public var friendship: Friendship
  public var mutualFriendCount: Int

  public init(
    id: UUID, username: String, displayName: String, bio: String? = nil, pictureUrl: URL? = nil,
    friendship: Friendship = .none, mutualFriendCount: Int = 0
  ) {
    self.id = id
    self.username = username
    self.displayName = displayName
    self.bio = bio
    self.pictureUrl = pictureUrl
    self.friendship = friendship
    self.mutualFriendCount = mutualFriendCount
  }
}
