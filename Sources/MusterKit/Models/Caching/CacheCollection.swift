/// A list or object that apps keep a copy of, and that has a stamp.
public enum CacheCollection: String, CaseIterable, Codable, Sendable, CodingKeyRepresentable {
  case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
  case notificationPreferences

  /// Whether the collection is one object, with the key `me`, and not a list.
  public var isSingleObject: Bool { self == .profile || self == .notificationPreferences }
}
