import Foundation

/// A change that the user makes. The store shows it immediately, keeps it on the disk, and sends it when it can.
///
/// A new thing has its id from the beginning, sent or not, and other writes may name it.
public enum Write: Codable, Sendable, Hashable {
  /// Answers the invitation to an event.
  case answer(Answer, to: Event.ID, plusOnes: Int? = nil)
  /// Accepts a friend request, by its id.
  case acceptRequest(FriendRequest.ID)
  /// Declines a friend request. The sender is not notified.
  case declineRequest(FriendRequest.ID)
  /// Cancels a friend request of the user's own. If there is none with this id, it is done.
  case cancelRequest(FriendRequest.ID)
  /// Asks a user to be friends, with a request of this id. If the two have asked each other, they become friends. If the
  /// user has asked already, that request counts instead, with its own id.
  case sendRequest(to: Person, id: FriendRequest.ID = FriendRequest.ID())
  /// Ends a friendship. The other user is not notified.
  case endFriendship(with: User.ID)
  /// Blocks a user: each of the two no longer sees the other.
  case block(Person)
  /// Unblocks a user. What the block ended does not come back.
  case unblock(User.ID)
  /// Creates an event with this id, whatever the draft's own.
  case createEvent(EventDraft, id: Event.ID = Event.ID())
  /// Changes an event. If a host has edited it since the version, the write is refused. Without a version, it is refused
  /// if another host has changed the same members since the user saw them.
  case editEvent(Event.ID, applying: EventEdit, ifVersion: Int? = nil)
  /// Cancels an event. It stays in the lists as cancelled.
  case cancelEvent(Event.ID, ifVersion: Int? = nil)
  /// Invites friends to an event.
  case invite([User.ID], to: Event.ID)
  /// Withdraws a guest's invitation.
  case withdraw(Guest.ID, from: Event.ID)
  /// Sets the answer of a guest of an event that the user hosts, even after the deadline. If there is another answer by
  /// now than the one that the user saw, the write is refused.
  case setAnswer(Answer, of: Guest, at: Event.ID)
  /// Admits a guest who came through a link with `approval`. To turn the guest away, use ``withdraw(_:from:)``.
  case approve(Guest, at: Event.ID)
  /// Asks a friend or a guest to be a co-host of an event that the user created. No list shows it before they accept.
  case addHost(User.ID, to: Event.ID)
  /// Removes a co-host of an event that the user created, or takes an offer back, or leaves an event that the user
  /// co-hosts.
  case removeHost(User.ID, from: Event.ID)
  /// Marks notifications as read, at most 500.
  case markRead([InboxItem.ID])
  /// Marks everything as read that the list shows, and what came before it. ``MusterStore/perform(_:)`` fills in the
  /// list's stamp and its unread notifications, so that later ones stay unread.
  case markAllRead(before: Stamp? = nil, shown: [InboxItem.ID] = [])
  /// Changes name, display name or bio. An edit of the address needs a connection: use ``MeAPI/edit(_:ifStamp:key:)``.
  case editProfile(ProfileEdit)
  /// Sets the picture of the profile.
  case setPicture(NewPicture)
  /// Removes the picture of the profile.
  case removePicture
  /// Turns types of notifications on and off. Types that are absent keep their value.
  case setPreferences(NotificationPreferences)
  /// Reports a user, an event or a visitor to the operators, with a report of this id. If the user has an open report of
  /// the same, that one counts instead. No list shows it.
  case report(Report.Subject, reason: ReportReason, text: String? = nil, id: Report.ID = Report.ID())
}

// The names on the disk. They stay when a label changes, so that writes of an earlier version of the app are still sent.
extension Write {
  enum AnswerCodingKeys: String, CodingKey { case _0 = "answer", to = "event", plusOnes }
  enum AcceptRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum DeclineRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum CancelRequestCodingKeys: String, CodingKey { case _0 = "request" }
  enum SendRequestCodingKeys: String, CodingKey { case to = "person", id }
  enum EndFriendshipCodingKeys: String, CodingKey { case with = "user" }
  enum BlockCodingKeys: String, CodingKey { case _0 = "person" }
  enum UnblockCodingKeys: String, CodingKey { case _0 = "user" }
  enum CreateEventCodingKeys: String, CodingKey { case _0 = "draft", id }
  enum EditEventCodingKeys: String, CodingKey { case _0 = "event", applying = "edit", ifVersion = "version" }
  enum CancelEventCodingKeys: String, CodingKey { case _0 = "event", ifVersion = "version" }
  enum InviteCodingKeys: String, CodingKey { case _0 = "users", to = "event" }
  enum WithdrawCodingKeys: String, CodingKey { case _0 = "guest", from = "event" }
  enum SetAnswerCodingKeys: String, CodingKey { case _0 = "answer", of = "guest", at = "event" }
  enum ApproveCodingKeys: String, CodingKey { case _0 = "guest", at = "event" }
  enum AddHostCodingKeys: String, CodingKey { case _0 = "user", to = "event" }
  enum RemoveHostCodingKeys: String, CodingKey { case _0 = "user", from = "event" }
  enum MarkReadCodingKeys: String, CodingKey { case _0 = "notifications" }
  enum MarkAllReadCodingKeys: String, CodingKey { case before, shown }
  enum EditProfileCodingKeys: String, CodingKey { case _0 = "edit" }
  enum SetPictureCodingKeys: String, CodingKey { case _0 = "picture" }
  enum SetPreferencesCodingKeys: String, CodingKey { case _0 = "preferences" }
  enum ReportCodingKeys: String, CodingKey { case _0 = "subject", reason, text, id }
}

extension Write {
  /// The id of what this write creates.
  public var createdID: UUID? {
    switch self {
    case .createEvent(_, let id): id.rawValue
    case .sendRequest(_, let id): id.rawValue
    case .report(_, _, _, let id): id.rawValue
    case .answer, .acceptRequest, .declineRequest, .cancelRequest, .endFriendship, .block, .unblock, .editEvent,
      .cancelEvent, .invite, .withdraw, .setAnswer, .approve, .addHost, .removeHost, .markRead, .markAllRead,
      .editProfile, .setPicture, .removePicture, .setPreferences:
      nil
    }
  }

  /// The event, request, report or user that this write is about.
  public var subject: UUID? {
    switch self {
    case .answer(_, let id, _), .createEvent(_, let id), .editEvent(let id, _, _), .cancelEvent(let id, _),
      .invite(_, let id), .withdraw(_, let id), .setAnswer(_, _, let id), .approve(_, let id), .addHost(_, let id),
      .removeHost(_, let id):
      id.rawValue
    case .acceptRequest(let id), .declineRequest(let id), .cancelRequest(let id), .sendRequest(_, let id): id.rawValue
    case .endFriendship(let id), .unblock(let id): id.rawValue
    case .block(let person): person.id.rawValue
    case .report(_, _, _, let id): id.rawValue
    case .markRead, .markAllRead, .editProfile, .setPicture, .removePicture, .setPreferences: nil
    }
  }

  /// Whether this write is about an event, a request, a report or a user: as its subject, or as one of those whom it
  /// names.
  func names(_ id: UUID) -> Bool {
    if subject == id { return true }
    return switch self {
    case .sendRequest(let person, _): person.id.rawValue == id
    case .invite(let users, _): users.contains { $0.rawValue == id }
    case .withdraw(let guest, _): guest.rawValue == id
    case .setAnswer(_, let guest, _), .approve(let guest, _): guest.id.rawValue == id
    case .addHost(let user, _), .removeHost(let user, _): user.rawValue == id
    case .report(let subject, _, _, _): subject.id == id
    case .answer, .acceptRequest, .declineRequest, .cancelRequest, .endFriendship, .block, .unblock, .createEvent,
      .editEvent, .cancelEvent, .markRead, .markAllRead, .editProfile, .setPicture, .removePicture, .setPreferences:
      false
    }
  }

  /// The collections of this user that may respond differently afterwards.
  public var collections: Set<CacheCollection> {
    switch self {
    case .answer, .editEvent, .cancelEvent, .invite, .withdraw, .setAnswer, .approve: [.events, .invitations]
    case .addHost, .report: []
    // A co-host who leaves no longer sees the event, nor what it was about.
    case .removeHost: [.events, .notifications]
    case .acceptRequest: [.friends, .friendRequests]
    case .declineRequest: [.friendRequests]
    case .cancelRequest: [.sentFriendRequests]
    // If the other user has asked already, the two become friends immediately.
    case .sendRequest: [.sentFriendRequests, .friends, .friendRequests]
    case .endFriendship: [.friends]
    case .block:
      [.blocks, .friends, .friendRequests, .sentFriendRequests, .events, .invitations, .notifications]
    case .unblock: [.blocks, .notifications, .events]
    case .createEvent: [.events]
    case .markRead, .markAllRead: [.notifications]
    // Own events and requests show the user.
    case .editProfile, .setPicture, .removePicture: [.profile, .friendRequests, .sentFriendRequests, .events]
    case .setPreferences: [.notificationPreferences]
    }
  }
}

extension Write {
  /// Sends this write.
  ///
  /// - Parameter basis: what the user saw. If there is something newer, the service refuses the write.
  /// - Returns: the object with the write, for those that set values.
  /// - Throws: ``MusterError``
  func send(with client: MusterClient, key: IdempotencyKey, basedOn basis: Basis? = nil) async throws -> NewerState? {
    switch self {
    case .answer(let answer, let event, let plusOnes):
      let (ifStatus, ifPlusOnes) = basis?.party.map { ($0.status, $0.plusOnes) } ?? (nil, nil)
      let answered = try await client.events.answer(
        answer, to: event, plusOnes: plusOnes, ifStatus: ifStatus, ifPlusOnes: ifPlusOnes, key: key)
      return .answer(answered.myStatus, plusOnes: answered.myPlusOnes)
    case .acceptRequest(let id): try await client.friends.requests.accept(id, key: key)
    case .declineRequest(let id): try await client.friends.requests.decline(id, key: key)
    case .cancelRequest(let id): try await Self.cancel(id, with: client, key: key)
    case .sendRequest(let person, let id): try await client.friends.requests.send(to: person.id, id: id, key: key)
    case .endFriendship(let user): try await client.friends.end(with: user, key: key)
    case .block(let person): try await client.blocks.block(person.id, key: key)
    case .unblock(let user): try await client.blocks.unblock(user, key: key)
    case .createEvent(var draft, let id):
      draft.id = id
      return .event(try await client.events.create(draft, key: key))
    case .editEvent(let id, let edit, let version):
      return .event(
        try await client.events.edit(id, applying: edit, ifVersion: version ?? basis?.version, key: key))
    case .cancelEvent(let id, let version): try await client.events.cancel(id, ifVersion: version, key: key)
    case .invite(let users, let event): try await client.events.invite(users, to: event, key: key)
    case .withdraw(let user, let event): try await client.events.withdraw(user, from: event, key: key)
    case .setAnswer(let answer, let guest, let event):
      let event = try await client.events.setAnswer(
        of: guest.id, at: event, to: answer, ifStatus: basis?.party?.status, ifPlusOnes: basis?.party?.plusOnes,
        key: key)
      // Only the first guests are in the response.
      let now = event.participants?.first { $0.id == guest.id }
      return .answer(now?.status ?? GuestStatus(rawValue: answer.rawValue), plusOnes: now?.plusOnes ?? guest.plusOnes)
    case .approve(let guest, let event):
      _ = try await client.events.approve(guest.id, at: event, seenIn: basis?.eTag, key: key)
    case .addHost(let user, let event): try await client.events.addHost(user, to: event, key: key)
    case .removeHost(let user, let event): try await client.events.removeHost(user, from: event, key: key)
    case .markRead(let ids): try await client.notifications.markRead(ids: ids, key: key)
    case .markAllRead(let stamp?, _): try await client.notifications.markRead(before: stamp, key: key)
    case .markAllRead(nil, _): try await client.notifications.markAllRead(key: key)
    case .setPicture(let picture):
      return .profile(
        try await client.me.setPicture(
          picture.bytes(), contentType: picture.contentType, ifStamp: basis?.stamp, key: key))
    case .removePicture: try await client.me.removePicture(ifStamp: basis?.stamp, key: key)
    case .editProfile(let edit): return .profile(try await client.me.edit(edit, ifStamp: basis?.stamp, key: key))
    case .setPreferences(let preferences):
      return .preferences(
        try await client.notifications.setPreferences(preferences, ifStamp: basis?.stamp, key: key))
    case .report(let subject, let reason, let text, let id):
      try await client.reports.report(subject, reason: reason, text: text, id: id, key: key)
    }
    return nil
  }

  /// Cancels a request, unless there is nothing to cancel: it was declined, or has never come to be, because another
  /// device had asked the same user before.
  private static func cancel(_ id: FriendRequest.ID, with client: MusterClient, key: IdempotencyKey) async throws {
    do {
      try await client.friends.requests.cancel(id, key: key)
    } catch MusterError.refused(let problem) where problem.type == .friendRequestNotFound {
      return
    } catch MusterError.refused(let problem) where problem.type == .friendRequestClosed {
      guard try await client.friends.requests.get(id).status == .declined else { throw MusterError.refused(problem) }
    }
  }
}
