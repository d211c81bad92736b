import Foundation

/// The contents of the store, as models. Nil where there is no copy.
struct Lists: Sendable, Hashable {
  var profile: User?
  var friends: [Friend]?
  var friendRequests: [FriendRequest]?
  var sentFriendRequests: [FriendRequest]?
  var events: [Event]?
  var invitations: [Invitation]?
  var blocks: [Block]?
  var notifications: [InboxItem]?
  var notificationPreferences: NotificationPreferences?
  /// Nil in the store.
  var surroundings: Surroundings?
}

extension Lists {
  /// Replaces a collection by the items of a copy; nil removes it.
  mutating func set(_ collection: CacheCollection, to copy: StoredCopy?) {
    switch collection {
    case .profile: profile = Self.models(of: copy, as: User.self)?.first
    case .friends: friends = Self.models(of: copy)
    case .friendRequests: friendRequests = Self.models(of: copy)
    case .sentFriendRequests: sentFriendRequests = Self.models(of: copy)
    case .events: events = Self.models(of: copy)
    case .invitations: invitations = Self.models(of: copy)
    case .blocks: blocks = Self.models(of: copy)
    case .notifications: notifications = Self.models(of: copy)
    case .notificationPreferences:
      notificationPreferences = Self.models(of: copy, as: NotificationPreferences.self)?.first
    }
  }

  /// Replaces a collection by that of other lists.
  mutating func set(_ collection: CacheCollection, from other: Lists) {
    switch collection {
    case .profile: profile = other.profile
    case .friends: friends = other.friends
    case .friendRequests: friendRequests = other.friendRequests
    case .sentFriendRequests: sentFriendRequests = other.sentFriendRequests
    case .events: events = other.events
    case .invitations: invitations = other.invitations
    case .blocks: blocks = other.blocks
    case .notifications: notifications = other.notifications
    case .notificationPreferences: notificationPreferences = other.notificationPreferences
    }
  }

  /// The items as models. An item that this version of the app cannot decode is left out; the copy keeps it, so that a
  /// later version shows it without asking again.
  private static func models<Model: Decodable>(of copy: StoredCopy?, as: Model.Type = Model.self) -> [Model]? {
    guard let copy else { return nil }
    let decoder = JSONDecoder.muster()
    var array = Data("[".utf8)
    for (index, entry) in copy.entries.enumerated() {
      if index > 0 { array.append(UInt8(ascii: ",")) }
      array += entry.json
    }
    array.append(UInt8(ascii: "]"))
    if let models = try? decoder.decode([Model].self, from: array) { return models }
    return copy.entries.compactMap { try? decoder.decode(Model.self, from: $0.json) }
  }
}
