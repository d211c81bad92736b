import Postgres

/// A list or object that a phone keeps a copy of, named as on the wire. All that there is to know of one stands here:
/// validations, deltas, stamps, exports, seeds and tests take it from ``facts``.
public enum Collection: String, CaseIterable, Sendable {
  case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
  case notificationPreferences

  /// The items of a collection's GET for a user, and the stamp of the same snapshot. A single object is a list of one.
  typealias Items = List<any JSONWritable & Sendable>

  struct Facts: Sendable {
    /// The name of its column in `user_stamps`.
    let column: String
    /// Of its GET, below `/api/v1/`.
    let path: String
    /// The list of its cursors; nil if it is one object, with the key `me`.
    let list: ListName?
    /// Reads a page of the items, in one statement.
    let items: @Sendable (User.ID, PageRequest, any Querying) async throws -> Items

    var isSingleObject: Bool { list == nil }
  }

  /// Made once, in the order of `allCases`.
  private static let made = allCases.map(\.making)

  var facts: Facts { Self.made[place] }

  private var making: Facts {
    switch self {
    case .profile:
      .object("profile", "users/me") { user, database in
        guard let profile = try await User.find(user, in: database) else { throw AppError.sessionEnded }
        return (profile, profile.stamp)
      }
    case .friends: .list(.friends, "friends", "friends") { try await Friend.list(of: $0, page: $1, in: $2) }
    case .friendRequests:
      .list(.incomingRequests, "friend_requests", "friend-requests?direction=incoming") {
        try await FriendRequest.list(.incoming, of: $0, page: $1, in: $2)
      }
    case .sentFriendRequests:
      .list(.sentRequests, "sent_friend_requests", "friend-requests?direction=sent") {
        try await FriendRequest.list(.sent, of: $0, page: $1, in: $2)
      }
    case .events: .list(.events, "events", "events") { try await Event.list(archived: false, of: $0, page: $1, in: $2) }
    case .invitations:
      .list(.invitations, "invitations", "invitations") {
        try await Invitation.list(of: $0, status: nil, page: $1, in: $2)
      }
    case .blocks: .list(.blocks, "blocks", "blocks") { try await Block.list(of: $0, page: $1, in: $2) }
    case .notifications:
      .list(.inbox, "notifications", "notifications") { try await InboxItem.list(of: $0, page: $1, in: $2) }
    case .notificationPreferences:
      .object("notification_preferences", "notification-preferences") { user, database in
        let preferences = try await NotificationPreferences.find(of: user, in: database)
        return (preferences, preferences.stamp)
      }
    }
  }

  var column: String { facts.column }

  /// - Throws: ``AppError/sessionEnded`` if there is no such account.
  func items(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> Items {
    try await facts.items(user, page, database)
  }

  /// A dictionary, because `init(rawValue:)` compares the names one by one.
  private static let named = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

  /// - Parameter name: from a client.
  static func claimed(_ name: String) -> Collection? { name.isASCII ? named[name] : nil }

  private static let all = allCases

  private var place: Int { Self.all.firstIndex(of: self) ?? 0 }

  /// Stands for the collection in a set of collections.
  var bit: Int32 { 1 << Int32(place) }

  /// The columns of all collections, in the order of `allCases`.
  static let columns: SQL = "\(unescaped: allCases.map(\.column).joined(separator: ", "))"
}

extension Collection.Facts {
  fileprivate static func list<Item: JSONWritable & Sendable>(
    _ list: ListName, _ column: String, _ path: String,
    _ read: @escaping @Sendable (User.ID, PageRequest, any Querying) async throws -> List<Item>
  ) -> Self {
    Self(column: column, path: path, list: list) { try await read($0, $1, $2).map { $0 } }
  }

  fileprivate static func object<Object: JSONWritable & Sendable>(
    _ column: String, _ path: String,
    _ read: @escaping @Sendable (User.ID, any Querying) async throws -> (Object, Timestamp?)
  ) -> Self {
    Self(column: column, path: path, list: nil) { user, _, database in
      let (object, stamp) = try await read(user, database)
      var items = Collection.Items(onlyPage: [object])
      items.stamp = stamp
      return items
    }
  }
}

/// A list or object that a phone may hold a copy of.
enum ClaimedList: Equatable, Sendable {
  case collection(Collection)
  /// The archive. It has no stamp: it shows the names of hosts, and those of a long past are too many to touch. A phone
  /// sends the digests of its copy, which show all that is out of date.
  case pastEvents

  private static let pastEventsName = "pastEvents"

  /// - Parameter name: from a client.
  init?(_ name: String) {
    if let collection = Collection.claimed(name) {
      self = .collection(collection)
    } else if name == Self.pastEventsName {
      self = .pastEvents
    } else {
      return nil
    }
  }

  var name: String {
    switch self {
    case .collection(let collection): collection.rawValue
    case .pastEvents: Self.pastEventsName
    }
  }

  /// The list of its cursors; nil if it is one object.
  var cursors: ListName? {
    switch self {
    case .collection(let collection): collection.facts.list
    case .pastEvents: .pastEvents
    }
  }
}
