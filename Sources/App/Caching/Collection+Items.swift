import Postgres

extension Collection {
  /// The items that a collection's GET sends to a user, and the stamp of the same snapshot. A single object is a list
  /// of one.
  typealias Items = List<any JSONWritable & Sendable>

  /// Reads a page of the items, in one statement.
  ///
  /// - Throws: ``AppError/sessionEnded`` if there is no such account.
  func items(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> Items {
    switch self {
    case .profile:
      guard let profile = try await User.find(user, in: database) else { throw AppError.sessionEnded }
      return Items(profile, stamp: profile.stamp)
    case .friends: return try await Friend.list(of: user, page: page, in: database).map { $0 }
    case .friendRequests: return try await FriendRequest.list(.incoming, of: user, page: page, in: database).map { $0 }
    case .sentFriendRequests: return try await FriendRequest.list(.sent, of: user, page: page, in: database).map { $0 }
    case .events: return try await Event.list(archived: false, of: user, page: page, in: database).map { $0 }
    case .invitations: return try await Invitation.list(of: user, status: nil, page: page, in: database).map { $0 }
    case .blocks: return try await Block.list(of: user, page: page, in: database).map { $0 }
    case .notifications: return try await InboxItem.list(of: user, page: page, in: database).map { $0 }
    case .notificationPreferences:
      let preferences = try await NotificationPreferences.find(of: user, in: database)
      return Items(preferences, stamp: preferences.stamp)
    }
  }
}

extension Collection.Items {
  fileprivate init(_ object: any JSONWritable & Sendable, stamp: Timestamp?) {
    self.init(onlyPage: [object])
    self.stamp = stamp
  }
}
