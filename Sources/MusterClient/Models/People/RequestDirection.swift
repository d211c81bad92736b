/// Which pending friend requests a list has.
public enum RequestDirection: String, Sendable, Codable, CaseIterable {
  /// Those that the caller received: the collection `friendRequests`.
  case incoming
  /// Those that the caller sent: the collection `sentFriendRequests`.
  case sent
}
