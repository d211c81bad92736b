import Foundation

/// A friend request.
public struct FriendRequest: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var sender: Person
  public var receiver: Person
  public var status: FriendRequestStatus
  /// Whether it waits apart from the receiver's other requests, because its sender has verified no address.
  public var filtered: Bool
  public var createdAt: Date

  public init(
    id: UUID, sender: Person, receiver: Person, status: FriendRequestStatus = .pending, filtered: Bool = false,
    createdAt: Date
  ) {
    self.id = id
    self.sender = sender
    self.receiver = receiver
    self.status = status
    self.filtered = filtered
    self.createdAt = createdAt
  }
}

extension FriendRequest {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      id: try container.decode(UUID.self, forKey: .id), sender: try container.decode(Person.self, forKey: .sender),
      receiver: try container.decode(Person.self, forKey: .receiver),
      status: try container.decode(FriendRequestStatus.self, forKey: .status),
      filtered: try container.decodeIfPresent(Bool.self, forKey: .filtered) ?? false,
      createdAt: try container.decode(Date.self, forKey: .createdAt))
  }
}
