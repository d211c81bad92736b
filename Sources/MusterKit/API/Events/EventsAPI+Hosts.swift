import Foundation

/// Actions of hosts, besides editing and inviting.
extension EventsAPI {
  /// Asks a friend or a guest to be a co-host of an event that the caller created. They are one when they accept: see
  /// ``ProposalsAPI``.
  ///
  /// - Throws: ``MusterError``: `not-the-creator`, `event-not-found`, `user-not-found`, `invalid-fields`,
  ///   `too-many-hosts`, `event-cancelled`, `event-archived`
  @discardableResult
  public func addHost(_ userID: User.ID, to id: Event.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.addHost(id, userID), key: key))
  }

  /// Removes a co-host of an event that the caller created, or takes an offer back, or leaves an event that the caller co-hosts.
  ///
  /// - Throws: ``MusterError``: `not-the-creator`, `not-a-host`, `event-not-found`, `event-cancelled`, `event-archived`
  public func removeHost(_ userID: User.ID, from id: Event.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.removeHost(id, userID), key: key))
  }

  /// The open offers to host an event that the caller hosts, oldest first.
  ///
  /// - Throws: ``MusterError``: `event-not-found`, `not-a-host`
  public func hostOffers(of id: Event.ID) async throws -> [HostOffer] {
    let page: Page<HostOffer> = try await caller.get(.read(.listHostOffers(id)))
    return page.items
  }

  /// Sets the answer of a guest of an event that the caller hosts, even after `answerBy`.
  ///
  /// - Parameter guestID: the ``Guest/id``. For a guest with an account, it is the user's id.
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `guest-not-found`, `event-cancelled`,
  ///   `event-archived`; `approval-pending` until the guest is approved; `answer-proposed` while an account decides;
  ///   `no-room` if there is no room for the group
  @discardableResult
  public func setAnswer(
    of guestID: Guest.ID, at id: Event.ID, to answer: Answer, key: IdempotencyKey = .random()
  ) async throws -> Event {
    try await caller.get(.write(.setAnswer(id, guestID), AnswerSetting(status: answer), key: key))
  }

  /// Admits a guest who came through a link with `approval`. A user may then answer; the answer of a visitor applies.
  /// To turn the guest away, use ``withdraw(_:from:key:)``.
  ///
  /// - Parameter guestID: the ``Guest/id``.
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `guest-not-found`, `event-cancelled`,
  ///   `event-archived`; `no-room` if the group is larger than the event
  @discardableResult
  public func approve(_ guestID: Guest.ID, at id: Event.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.approveGuest(id, guestID), key: key))
  }

  /// Reminds the guests who have not answered, each at most once a day.
  ///
  /// - Returns: the number of reminded guests.
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `event-cancelled`, `event-archived`, `answers-closed`
  @discardableResult
  public func remindGuests(of id: Event.ID, key: IdempotencyKey = .random()) async throws -> Int {
    let reminded: Reminded = try await caller.get(.write(.remindGuests(id), key: key))
    return reminded.reminded
  }

  /// Creates an event of the caller's own like one that they host.
  ///
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `invalid-fields`
  @discardableResult
  public func duplicate(_ id: Event.ID, as copy: EventCopy, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.duplicateEvent(id), copy, key: key))
  }
}
