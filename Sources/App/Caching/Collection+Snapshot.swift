import Postgres

extension Collection {
  /// Reads everything that the collection's GET sends to a user, in one statement that reads no more rows than a
  /// ``Snapshot`` can hold.
  ///
  /// - Throws: ``AppError/sessionEnded`` if there is no such account.
  func snapshot(of user: User.ID, in database: some Querying) async throws -> Snapshot {
    switch self {
    case .profile:
      guard let profile = try await User.find(user, in: database) else { throw AppError.sessionEnded }
      return Snapshot(profile, stamp: profile.stamp)
    case .friends: return Snapshot(try await Friend.list(of: user, page: .whole, in: database)) { $0 }
    case .friendRequests:
      return Snapshot(try await FriendRequest.list(.incoming, of: user, page: .whole, in: database)) { $0 }
    case .sentFriendRequests:
      return Snapshot(try await FriendRequest.list(.sent, of: user, page: .whole, in: database)) { $0 }
    case .events:
      return Snapshot(try await Event.list(archived: false, of: user, page: .whole, in: database)) { $0 }
    case .invitations:
      return Snapshot(try await Invitation.list(of: user, status: nil, page: .whole, in: database)) { $0 }
    case .blocks: return Snapshot(try await Block.list(of: user, page: .whole, in: database)) { $0 }
    case .notifications: return Snapshot(try await InboxItem.list(of: user, page: .whole, in: database)) { $0 }
    case .notificationPreferences:
      let preferences = try await NotificationPreferences.find(of: user, in: database)
      return Snapshot(preferences, stamp: preferences.stamp)
    }
  }
}
