import Foundation

/// A change that the user makes. The store shows it immediately, keeps it on the disk, and sends it when it can.
///
/// Events and friend requests that are not sent yet have temporary ids. Writes may name them: they wait, and get the
/// real ids when these are known.
public enum Write: Codable, Sendable, Hashable {
  /// Answers the invitation to an event.
  case answer(Answer, to: Event.ID, plusOnes: Int? = nil)
  /// Accepts a friend request, by its id.
  case acceptRequest(FriendRequest.ID)
  /// Declines a friend request. The sender is not notified.
  case declineRequest(FriendRequest.ID)
  /// Cancels a friend request of the user's own.
  case cancelRequest(FriendRequest.ID)
  /// Asks a user to be friends. The request has the temporary id until the service gives it one.
  case sendRequest(to: Person, temporaryID: FriendRequest.ID = FriendRequest.ID())
  /// Ends a friendship. The other user is not notified.
  case endFriendship(with: User.ID)
  /// Blocks a user: each of the two no longer sees the other.
  case block(Person)
  /// Unblocks a user. What the block ended does not come back.
  case unblock(User.ID)
  /// Creates an event. It has the temporary id until the service gives it one.
  case createEvent(EventDraft, temporaryID: Event.ID = Event.ID())
  /// Changes an event. If it was edited since the version, the write is refused; without a version, the last edit wins.
  case editEvent(Event.ID, applying: EventEdit, ifVersion: Int? = nil)
  /// Cancels an event. It stays in the lists as cancelled.
  case cancelEvent(Event.ID, ifVersion: Int? = nil)
  /// Invites friends to an event.
  case invite([User.ID], to: Event.ID)
  /// Withdraws a guest's invitation.
  case withdraw(Guest.ID, from: Event.ID)
  /// Marks notifications as read, at most 500.
  case markRead([InboxItem.ID])
  /// Marks everything as read that the list shows, and what came before it. ``MusterStore/perform(_:)`` fills in the
  /// list's stamp and its unread notifications, so that later ones stay unread.
  case markAllRead(before: Stamp? = nil, shown: [InboxItem.ID] = [])
  /// Changes name, display name or bio. An edit of the address needs a connection: use ``MeAPI/edit(_:key:)``.
  case editProfile(ProfileEdit)
  /// Turns types of notifications on and off. Types that are absent keep their value.
  case setPreferences(NotificationPreferences)
}

// The names on the disk. They stay when a label changes, so that writes of an earlier version of the app are still sent.
extension Write {
  enum AnswerCodingKeys: String, CodingKey { case _0 = "answer", to = "event", plusOnes }
  enum AcceptRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum DeclineRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum CancelRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum SendRequestCodingKeys: String, CodingKey { case to = "person", temporaryID = "id" }
  enum EndFriendshipCodingKeys: String, CodingKey { case with = "user" }
  enum BlockCodingKeys: String, CodingKey { case _0 = "person" }
  enum UnblockCodingKeys: String, CodingKey { case _0 = "user" }
  enum CreateEventCodingKeys: String, CodingKey { case _0 = "draft", temporaryID = "id" }
  enum EditEventCodingKeys: String, CodingKey { case _0 = "event", applying = "edit", ifVersion = "version" }
  enum CancelEventCodingKeys: String, CodingKey { case _0 = "event", ifVersion = "version" }
  enum InviteCodingKeys: String, CodingKey { case _0 = "users", to = "event" }
  enum WithdrawCodingKeys: String, CodingKey { case _0 = "guest", from = "event" }
  enum MarkReadCodingKeys: String, CodingKey { case _0 = "notifications" }
  enum MarkAllReadCodingKeys: String, CodingKey { case before, shown }
  enum EditProfileCodingKeys: String, CodingKey { case _0 = "edit" }
  enum SetPreferencesCodingKeys: String, CodingKey { case _0 = "preferences" }
}

extension Write {
  /// The temporary id of what this write creates.
  public var temporaryID: UUID? {
    switch self {
    case .createEvent(_, let id): id.rawValue
    case .sendRequest(_, let id): id.rawValue
    case .answer, .acceptRequest, .declineRequest, .cancelRequest, .endFriendship, .block, .unblock, .editEvent,
      .cancelEvent, .invite, .withdraw, .markRead, .markAllRead, .editProfile, .setPreferences:
      nil
    }
  }

  /// The event, request or user that this write is about.
  public var subject: UUID? {
    switch self {
    case .answer(_, let id, _), .createEvent(_, let id), .editEvent(let id, _, _), .cancelEvent(let id, _),
      .invite(_, let id), .withdraw(_, let id):
      id.rawValue
    case .acceptRequest(let id), .declineRequest(let id), .cancelRequest(let id), .sendRequest(_, let id): id.rawValue
    case .endFriendship(let id), .unblock(let id): id.rawValue
    case .block(let person): person.id.rawValue
    case .markRead, .markAllRead, .editProfile, .setPreferences: nil
    }
  }

  /// The collections of this user that may respond differently afterwards.
  public var collections: Set<CacheCollection> {
    switch self {
    case .answer, .editEvent, .cancelEvent, .invite, .withdraw: [.events, .invitations]
    case .acceptRequest: [.friends, .friendRequests]
    case .declineRequest: [.friendRequests]
    case .cancelRequest: [.sentFriendRequests]
    // If the other user has asked already, the two become friends immediately.
    case .sendRequest: [.sentFriendRequests, .friends, .friendRequests]
    case .endFriendship: [.friends]
    case .block:
      [.blocks, .friends, .friendRequests, .sentFriendRequests, .events, .invitations, .notifications]
    case .unblock: [.blocks, .notifications]
    case .createEvent: [.events]
    case .markRead, .markAllRead: [.notifications]
    // Own events and requests show the user.
    case .editProfile: [.profile, .friendRequests, .sentFriendRequests, .events]
    case .setPreferences: [.notificationPreferences]
    }
  }

  /// This write with the real ids of what had temporary ones.
  func resolved(_ ids: [UUID: UUID]) -> Write {
    guard let subject, let id = ids[subject] else { return self }
    return switch self {
    case .answer(let answer, _, let plusOnes): .answer(answer, to: Identifier(id), plusOnes: plusOnes)
    case .acceptRequest: .acceptRequest(Identifier(id))
    case .declineRequest: .declineRequest(Identifier(id))
    case .cancelRequest: .cancelRequest(Identifier(id))
    case .sendRequest(let person, _): .sendRequest(to: person, temporaryID: Identifier(id))
    case .createEvent(let draft, _): .createEvent(draft, temporaryID: Identifier(id))
    case .editEvent(_, applying: let edit, let version): .editEvent(Identifier(id), applying: edit, ifVersion: version)
    case .cancelEvent(_, let version): .cancelEvent(Identifier(id), ifVersion: version)
    case .invite(let users, _): .invite(users, to: Identifier(id))
    case .withdraw(let user, _): .withdraw(user, from: Identifier(id))
    case .endFriendship, .block, .unblock, .markRead, .markAllRead, .editProfile, .setPreferences: self
    }
  }
}

extension Write {
  /// Sends this write.
  ///
  /// - Returns: the id of what it created, if it had a temporary one.
  /// - Throws: ``MusterError``
  func send(with client: MusterClient, key: IdempotencyKey) async throws -> UUID? {
    switch self {
    case .answer(let answer, let event, let plusOnes):
      try await client.events.answer(answer, to: event, plusOnes: plusOnes, key: key)
    case .acceptRequest(let id): try await client.friends.requests.accept(id, key: key)
    case .declineRequest(let id): try await client.friends.requests.decline(id, key: key)
    case .cancelRequest(let id): try await client.friends.requests.cancel(id, key: key)
    case .sendRequest(let person, _): return try await client.friends.requests.send(to: person.id, key: key).id.rawValue
    case .endFriendship(let user): try await client.friends.end(with: user, key: key)
    case .block(let person): try await client.blocks.block(person.id, key: key)
    case .unblock(let user): try await client.blocks.unblock(user, key: key)
    case .createEvent(let draft, _): return try await client.events.create(draft, key: key).id.rawValue
    case .editEvent(let id, let edit, let version):
      try await client.events.edit(id, applying: edit, ifVersion: version, key: key)
    case .cancelEvent(let id, let version): try await client.events.cancel(id, ifVersion: version, key: key)
    case .invite(let users, let event): try await client.events.invite(users, to: event, key: key)
    case .withdraw(let user, let event): try await client.events.withdraw(user, from: event, key: key)
    case .markRead(let ids): try await client.notifications.markRead(ids: ids, key: key)
    case .markAllRead(let stamp?, _): try await client.notifications.markRead(before: stamp, key: key)
    case .markAllRead(nil, _): try await client.notifications.markAllRead(key: key)
    case .editProfile(let edit): try await client.me.edit(edit, key: key)
    case .setPreferences(let preferences): try await client.notifications.setPreferences(preferences, key: key)
    }
    return nil
  }
}
