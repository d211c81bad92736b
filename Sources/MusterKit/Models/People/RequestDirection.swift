/// Which pending friend requests a list has.
public enum RequestDirection: String, Sendable, Codable, CaseIterable {
  /// Those that the caller received: the collection `friendRequests`.
  case incoming
  /// Those that the caller sent: the collection `sentFriendRequests`.
  case sent
  /// Those that the caller received from accounts without a verified address. No collection, and no one is notified.
  case filtered
}
