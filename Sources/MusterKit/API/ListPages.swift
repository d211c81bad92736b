// The lists of the API, page by page. `limit` is the number of items in a page.

extension AuthAPI {
  /// The caller's open sessions: see ``sessions(limit:cursor:)``.
  public func sessionPages(limit: Int? = nil) -> Pages<Session> {
    Pages { try await sessions(limit: limit, cursor: $0) }
  }
}

extension FriendsAPI {
  /// Friends, newest first: see ``list(limit:cursor:)``.
  public func pages(limit: Int? = nil) -> Pages<Friend> {
    Pages { try await list(limit: limit, cursor: $0) }
  }
}

extension FriendRequestsAPI {
  /// Pending requests, newest first: see ``list(_:limit:cursor:)``.
  public func pages(_ direction: RequestDirection = .incoming, limit: Int? = nil) -> Pages<FriendRequest> {
    Pages { try await list(direction, limit: limit, cursor: $0) }
  }
}

extension BlocksAPI {
  /// Blocked users, newest first: see ``list(limit:cursor:)``.
  public func pages(limit: Int? = nil) -> Pages<Block> {
    Pages { try await list(limit: limit, cursor: $0) }
  }
}

extension EventsAPI {
  /// Live events by their start: see ``list(limit:cursor:includeParticipants:)``.
  public func pages(limit: Int? = nil, includeParticipants: Bool = false) -> Pages<Event> {
    Pages { try await list(limit: limit, cursor: $0, includeParticipants: includeParticipants) }
  }

  /// The archive, latest first: see ``past(limit:cursor:includeParticipants:)``.
  public func pastPages(limit: Int? = nil, includeParticipants: Bool = false) -> Pages<Event> {
    Pages { try await past(limit: limit, cursor: $0, includeParticipants: includeParticipants) }
  }

  /// The guests of an event: see ``guests(of:limit:cursor:)``.
  public func guestPages(of id: Event.ID, limit: Int? = nil) -> Pages<Guest> {
    Pages { try await guests(of: id, limit: limit, cursor: $0) }
  }
}

extension InvitationsAPI {
  /// Invitations, newest first: see ``list(status:limit:cursor:includeParticipants:)``.
  public func pages(
    status: GuestStatus? = nil, limit: Int? = nil, includeParticipants: Bool = false
  ) -> Pages<Invitation> {
    Pages { try await list(status: status, limit: limit, cursor: $0, includeParticipants: includeParticipants) }
  }
}

extension ProposalsAPI {
  /// The user's proposals, newest first: see ``list(limit:cursor:)``.
  public func pages(limit: Int? = nil) -> Pages<Proposal> {
    Pages { try await list(limit: limit, cursor: $0) }
  }
}

extension NotificationsAPI {
  /// The inbox, newest first: see ``list(unread:limit:cursor:)``.
  public func pages(unread: Bool = false, limit: Int? = nil) -> Pages<InboxItem> {
    Pages { try await list(unread: unread, limit: limit, cursor: $0) }
  }
}

extension DevicesAPI {
  /// The devices of open sessions, newest first: see ``list(limit:cursor:)``.
  public func pages(limit: Int? = nil) -> Pages<Device> {
    Pages { try await list(limit: limit, cursor: $0) }
  }
}
