import Foundation

/// A friend request.
public struct FriendRequest: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var sender: Person
  public var receiver: Person
  public var status: FriendRequestStatus
  public var createdAt: Date

  public init(id: UUID, sender: Person, receiver: Person, status: FriendRequestStatus = .pending, createdAt: Date) {
    self.id = id
    self.sender = sender
    self.receiver = receiver
    self.status = status
    self.createdAt = createdAt
  }
}
