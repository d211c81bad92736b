import Postgres

/// All of a collection, as a validation hands it out: what its GET sends, page after page, and the stamp of the same
/// snapshot.
struct Whole: Sendable {
  /// In bytes of JSON. What is longer is read page by page.
  static let maximumLength = 64 << 10

  let stamp: Timestamp?
  /// A JSON array; nil if it would be too long.
  let items: [UInt8]?

  init<Item>(_ list: List<Item>, item: (Item) -> some JSONWritable) {
    stamp = list.stamp
    items = list.next == nil ? Self.array(list.items, item) : nil
  }

  /// A single object is an array of one.
  init(_ object: some JSONWritable, stamp: Timestamp?) {
    self.stamp = stamp
    items = Self.array([object]) { $0 }
  }

  private static func array<Item>(_ items: [Item], _ item: (Item) -> some JSONWritable) -> [UInt8]? {
    var json = JSONWriter()
    json.raw("[")
    for (index, value) in items.enumerated() {
      if index > 0 { json.raw(",") }
      item(value).write(to: &json)
      guard json.bytes.count < maximumLength else { return nil }
    }
    json.raw("]")
    return json.bytes
  }
}

extension Collection {
  /// Reads all that the collection's GET sends to a user, or finds that it is too much, by one statement that reads no
  /// more than fits.
  ///
  /// - Throws: ``AppError/sessionEnded`` without an account.
  func whole(of user: User.ID, in database: some Querying) async throws -> Whole {
    switch self {
    case .profile:
      guard let profile = try await User.find(user, in: database) else { throw AppError.sessionEnded }
      return Whole(profile, stamp: profile.stamp)
    case .friends: return Whole(try await Friend.list(of: user, page: .whole, in: database)) { $0 }
    case .friendRequests:
      return Whole(try await FriendRequest.list(.incoming, of: user, page: .whole, in: database)) { $0 }
    case .sentFriendRequests:
      return Whole(try await FriendRequest.list(.sent, of: user, page: .whole, in: database)) { $0 }
    case .events:
      return Whole(try await Event.list(archived: false, of: user, page: .whole, in: database)) {
        EventJSON(event: $0, participants: nil)
      }
    case .invitations:
      return Whole(try await Invitation.list(of: user, status: nil, page: .whole, in: database)) { $0 }
    case .blocks: return Whole(try await Block.list(of: user, page: .whole, in: database)) { $0 }
    case .notifications: return Whole(try await InboxItem.list(of: user, page: .whole, in: database)) { $0 }
    case .notificationPreferences:
      let preferences = try await NotificationPreferences.find(of: user, in: database)
      return Whole(preferences, stamp: preferences.stamp)
    }
  }
}
