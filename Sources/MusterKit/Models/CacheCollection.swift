/// A list or object that apps keep a copy of, and that has a stamp.
public enum CacheCollection: String, CaseIterable, Codable, Sendable, CodingKeyRepresentable {
  case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
  case notificationPreferences

  /// Whether the collection is one object, with the key `me`, and not a list.
  public var isSingleObject: Bool { facts.key == nil }

  /// The key of an item, as validations name it.
  public func key(of item: JSONValue) -> String? {
    guard let key = facts.key else { return "me" }
    return key.reduce(item as JSONValue?) { $0?[$1] }?.string
  }
}

extension CacheCollection {
  /// All that the store and the calls know of a collection.
  struct Facts: Sendable {
    /// Its GET.
    let route: Route
    let query: [(name: String, value: String?)]
    /// The way to the key in an item: to its own id, or to that of the user or event that it is about. Nil for a single
    /// object.
    let key: [String]?
    /// Replaces the collection in lists by the items of a copy; nil removes it.
    let set: @Sendable (inout Lists, StoredCopy?) -> UndecodableItems?
    /// Replaces the collection in lists by that of other lists.
    let take: @Sendable (inout Lists, Lists) -> Void
    /// Whether the collection is the same in two lists.
    let isSame: @Sendable (Lists, Lists) -> Bool
    let show: @MainActor @Sendable (MusterStore, Lists, ListState) -> Void
  }

  var facts: Facts { Self.made[Self.all.firstIndex(of: self) ?? 0] }

  private static let all = allCases
  private static let made = all.map(\.making)

  private var making: Facts {
    switch self {
    case .profile: .object(.getMe, \.profile) { $0.profile }
    case .friends: .list(.listFriends, key: "user", "id", in: \.friends) { $0.friends }
    case .friendRequests: .list(.listFriendRequests, .incoming, key: "id", in: \.friendRequests) { $0.friendRequests }
    case .sentFriendRequests:
      .list(.listFriendRequests, .sent, key: "id", in: \.sentFriendRequests) { $0.sentFriendRequests }
    case .events: .list(.listEvents, key: "id", in: \.events) { $0.events }
    case .invitations: .list(.listInvitations, key: "event", "id", in: \.invitations) { $0.invitations }
    case .blocks: .list(.listBlocks, key: "user", "id", in: \.blocks) { $0.blocks }
    case .notifications: .list(.listNotifications, key: "id", in: \.notifications) { $0.notifications }
    case .notificationPreferences:
      .object(.getNotificationPreferences, \.notificationPreferences) { $0.notificationPreferences }
    }
  }
}

extension CacheCollection.Facts {
  fileprivate static func list<Item: Decodable & Sendable & Hashable>(
    _ route: Route, _ direction: RequestDirection? = nil, key: String...,
    in list: any WritableKeyPath<Lists, [Item]?> & Sendable,
    shownBy shown: @escaping @MainActor @Sendable (MusterStore) -> StoredList<Item>
  ) -> Self {
    Self(
      route: route, query: direction.map { [("direction", $0.rawValue)] } ?? [], key: key,
      set: { (lists, copy) in
        let read: (models: [Item], undecodable: UndecodableItems?)? = copy?.models()
        lists[keyPath: list] = read?.models
        return read?.undecodable
      }, take: { $0[keyPath: list] = $1[keyPath: list] }, isSame: { $0[keyPath: list] == $1[keyPath: list] },
      show: { shown($0).show($1[keyPath: list], $2) })
  }

  fileprivate static func object<Object: Decodable & Sendable & Hashable>(
    _ route: Route, _ object: any WritableKeyPath<Lists, Object?> & Sendable,
    shownBy shown: @escaping @MainActor @Sendable (MusterStore) -> StoredObject<Object>
  ) -> Self {
    Self(
      route: route, query: [], key: nil,
      set: { (lists, copy) in
        let read: (models: [Object], undecodable: UndecodableItems?)? = copy?.models()
        lists[keyPath: object] = read?.models.first
        return read?.undecodable
      },
      take: { $0[keyPath: object] = $1[keyPath: object] },
      isSame: { $0[keyPath: object] == $1[keyPath: object] },
      show: { shown($0).show($1[keyPath: object], $2) })
  }
}

/// The time of a collection's last change for the caller, as the exact text of the API. Send it back unchanged: a
/// `Date` cannot hold it.
public struct Stamp: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var description: String { rawValue }
}
