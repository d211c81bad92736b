import Postgres

/// A list or object that a phone keeps a copy of, named as on the wire.
public enum Collection: String, CaseIterable, Sendable {
  case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
  case notificationPreferences

  /// A dictionary, because `init(rawValue:)` compares the names one by one.
  static let named = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

  private static let all = allCases

  /// Stands for the collection in a set of collections.
  var bit: Int32 { Self.all.firstIndex(of: self).map { 1 << Int32($0) } ?? 0 }

  /// The name of its column in `user_stamps`.
  var column: String {
    switch self {
    case .profile: "profile"
    case .friends: "friends"
    case .friendRequests: "friend_requests"
    case .sentFriendRequests: "sent_friend_requests"
    case .events: "events"
    case .invitations: "invitations"
    case .blocks: "blocks"
    case .notifications: "notifications"
    case .notificationPreferences: "notification_preferences"
    }
  }

  /// The columns of all collections, in the order of `allCases`.
  static let columns: SQL = "\(unescaped: allCases.map(\.column).joined(separator: ", "))"
}
