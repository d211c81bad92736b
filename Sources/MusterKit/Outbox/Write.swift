import Foundation

/// A change that the user makes. The store shows it immediately, keeps it on the disk, and sends it when it can.
///
/// Events and friend requests that are not sent yet have temporary ids. Writes may name them: they wait, and get the
/// real ids when these are known.
public enum Write: Codable, Sendable, Hashable {
  /// Answers the invitation to an event.
  case answer(AnswerStatus, to: UUID, plusOnes: Int? = nil)
  /// Accepts a friend request, by its id.
  case acceptRequest(UUID)
  /// Declines a friend request. The sender is not notified.
  case declineRequest(UUID)
  /// Cancels a friend request of the user's own.
  case cancelRequest(UUID)
  /// Asks a user to be friends. The request has the temporary id until the service gives it one.
  case sendRequest(to: Person, temporaryID: UUID = UUID())
  case endFriendship(with: UUID)
  /// Blocks a user: each of the two no longer sees the other.
  case block(Person)
  case unblock(UUID)
  /// Creates an event. It has the temporary id until the service gives it one.
  case createEvent(EventDraft, temporaryID: UUID = UUID())
  /// Changes an event. If it was edited since the version, the write is refused; without a version, the last edit wins.
  case editEvent(UUID, applying: EventEdit, ifVersion: Int? = nil)
  /// Cancels an event. It stays in the lists as cancelled.
  case cancelEvent(UUID, ifVersion: Int? = nil)
  /// Invites friends to an event.
  case invite([UUID], to: UUID)
  /// Withdraws a guest's invitation.
  case withdraw(UUID, from: UUID)
  /// Marks notifications as read, at most 500.
  case markRead([UUID])
  /// Marks everything as read that the list shows, and what came before it. ``MusterStore/perform(_:)`` fills in the
  /// list's stamp and its unread notifications, so that later ones stay unread.
  case markAllRead(before: Stamp? = nil, shown: [UUID] = [])
  /// Changes name, display name or bio. An edit of the address needs a connection: use ``MeAPI/edit(_:key:)``.
  case editProfile(ProfileEdit)
  /// Turns types of notifications on and off. Types that are absent keep their value.
  case setPreferences(NotificationPreferences)
}

extension Write {
  /// The temporary id of what this write creates.
  public var temporaryID: UUID? {
    switch self {
    case .createEvent(_, let id), .sendRequest(_, let id): id
    default: nil
    }
  }

  /// The event, request or user that this write is about.
  public var subject: UUID? {
    switch self {
    case .answer(_, let id, _), .acceptRequest(let id), .declineRequest(let id), .cancelRequest(let id),
      .sendRequest(_, let id), .endFriendship(let id), .unblock(let id), .createEvent(_, let id),
      .editEvent(let id, _, _), .cancelEvent(let id, _), .invite(_, let id), .withdraw(_, let id):
      id
    case .block(let person): person.id
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
    case .answer(let answer, _, let plusOnes): .answer(answer, to: id, plusOnes: plusOnes)
    case .acceptRequest: .acceptRequest(id)
    case .declineRequest: .declineRequest(id)
    case .cancelRequest: .cancelRequest(id)
    case .sendRequest(let person, _): .sendRequest(to: person, temporaryID: id)
    case .createEvent(let draft, _): .createEvent(draft, temporaryID: id)
    case .editEvent(_, applying: let edit, let version): .editEvent(id, applying: edit, ifVersion: version)
    case .cancelEvent(_, let version): .cancelEvent(id, ifVersion: version)
    case .invite(let users, _): .invite(users, to: id)
    case .withdraw(let user, _): .withdraw(user, from: id)
    case .endFriendship, .block, .unblock, .markRead, .markAllRead, .editProfile, .setPreferences: self
    }
  }
}
