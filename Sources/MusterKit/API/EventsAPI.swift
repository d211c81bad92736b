import Foundation

/// Events that the caller hosts or is invited to.
public struct EventsAPI: Sendable {
  let caller: APICaller

  /// The share links of an event.
  public var links: EventLinksAPI { EventLinksAPI(caller: caller) }

  /// Live events by their start: the collection `events`.
  ///
  /// - Parameter includeParticipants: adds the first five participants of each. The list is then no cache collection.
  public func list(
    limit: Int? = nil, cursor: String? = nil, includeParticipants: Bool = false
  ) async throws -> Page<Event> {
    let query = [("include", includeParticipants ? "participants" : nil)]
    return try await caller.get(.page(.listEvents, query, limit: limit, cursor: cursor))
  }

  /// The archive: events that ended more than a day ago, latest first.
  public func past(
    limit: Int? = nil, cursor: String? = nil, includeParticipants: Bool = false
  ) async throws -> Page<Event> {
    let query = [("when", "past"), ("include", includeParticipants ? "participants" : nil)]
    return try await caller.get(.page(.listEvents, query, limit: limit, cursor: cursor))
  }

  /// An event with its first 20 participants.
  ///
  /// - Parameter includeGuests: adds the first page of the guest list, and the stamp of both.
  /// - Throws: ``MusterError``: `event-not-found`
  public func get(_ id: Event.ID, includeGuests: Bool = false) async throws -> Event {
    try await caller.get(.read(.getEvent(id), [("include", includeGuests ? "guests" : nil)]))
  }

  /// An event with the first page of its guest list, unless a copy is current.
  ///
  /// - Parameter eTag: of the response with the copy.
  /// - Returns: nil if the copy is current.
  /// - Throws: ``MusterError``: `event-not-found`
  func withGuests(_ id: Event.ID, unless eTag: String?) async throws -> (event: JSONValue, eTag: String?)? {
    var call = APICall.read(.getEvent(id), [("include", "guests")])
    call.headers["If-None-Match"] = eTag
    return try await caller.getTagged(call)
  }

  /// Up to 100 events in the order of their ids, live or archived, without those that the caller may not see.
  public func find(_ ids: [Event.ID]) async throws -> [Event] {
    let query = [("ids", ids.map(\.wire).joined(separator: ","))]
    let page: Page<Event> = try await caller.get(.read(.listEvents, query))
    return page.items
  }

  /// Creates an event and invites friends to it: all of them, or nothing happens.
  ///
  /// - Throws: ``MusterError``: `invalid-fields`
  @discardableResult
  public func create(_ draft: EventDraft, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.createEvent, draft, key: key))
  }

  /// Changes an event that the caller hosts.
  ///
  /// - Parameter version: the version that the edit is based on. Without it, the last edit wins.
  /// - Throws: ``MusterError``: `lost-update`, `not-a-host`, `event-not-found`, `event-cancelled`,
  ///   `event-archived`, `invalid-fields`
  @discardableResult
  public func edit(
    _ id: Event.ID, applying edit: EventEdit, ifVersion version: Int? = nil, key: IdempotencyKey = .random()
  ) async throws -> Event {
    try await caller.get(.write(.editEvent(id), edit, key: key).basedOn(version.map(String.init)))
  }

  /// Cancels an event that the caller created. It stays readable, and no longer changes.
  ///
  /// - Throws: ``MusterError``: `lost-update`, `not-the-creator`, `event-not-found`, `event-archived`
  @discardableResult
  public func cancel(
    _ id: Event.ID, ifVersion version: Int? = nil, key: IdempotencyKey = .random()
  ) async throws -> Event {
    try await caller.get(.write(.cancelEvent(id), key: key).basedOn(version.map(String.init)))
  }

  /// The guests of an event.
  ///
  /// - Throws: ``MusterError``: `event-not-found`
  public func guests(of id: Event.ID, limit: Int? = nil, cursor: String? = nil) async throws -> Page<Guest> {
    try await caller.get(.page(.listGuests(id), limit: limit, cursor: cursor))
  }

  /// Invites friends: all of them, or nothing happens. Guests who are invited already keep their state.
  ///
  /// - Parameter userIDs: at most 500.
  /// - Throws: ``MusterError``: `invalid-fields`, `not-a-host`, `event-not-found`, `event-cancelled`
  @discardableResult
  public func invite(_ userIDs: [User.ID], to id: Event.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.inviteToEvent(id), Invitees(userIds: userIDs), key: key))
  }

  /// Withdraws a guest's invitation, or removes a visitor.
  ///
  /// - Parameter guestID: the ``Guest/id``. For a guest with an account, it is the user's id.
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `event-cancelled`, `event-archived`
  @discardableResult
  public func withdraw(_ guestID: Guest.ID, from id: Event.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.withdrawInvitation(id, guestID), key: key))
  }

  /// Answers the caller's invitation. If the event has no room for the caller and all plus-ones, or if others wait,
  /// `going` leads to `myStatus` `waitlisted`.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the caller brings along, at most the event's `maxPlusOnes`. Nil keeps the
  ///     number.
  ///   - ifStatus: the `myStatus` that the answer is based on. If there is a newer answer, the call is refused, with
  ///     that answer as ``Problem/current``. Nil: the last answer wins.
  ///   - ifPlusOnes: the `myPlusOnes` that the answer is based on.
  /// - Throws: ``MusterError``: `superseded`, `event-not-found`, `own-event`, `event-cancelled`, `event-archived`, `invalid-fields`;
  ///   `approval-pending` until a host has approved the caller; `no-room` if the caller is going and there is no room
  ///   for more people
  @discardableResult
  public func answer(
    _ answer: Answer, to id: Event.ID, plusOnes: Int? = nil, ifStatus: GuestStatus? = nil, ifPlusOnes: Int? = nil,
    key: IdempotencyKey = .random()
  ) async throws -> Event {
    let body = InvitationAnswer(status: answer, plusOnes: plusOnes, ifStatus: ifStatus, ifPlusOnes: ifPlusOnes)
    return try await caller.get(.write(.answerInvitation(id), body, key: key))
  }

  /// The event as an iCalendar object (RFC 5545).
  ///
  /// - Throws: ``MusterError``: `event-not-found`
  public func calendar(of id: Event.ID) async throws -> String {
    String(decoding: try await caller.bytes(of: .read(.getEventCalendar(id))), as: UTF8.self)
  }
}

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
  /// - Parameters:
  ///   - guestID: the ``Guest/id``. For a guest with an account, it is the user's id.
  ///   - ifStatus: the guest's status that the answer is based on. If there is a newer answer, the call is refused.
  ///   - ifPlusOnes: the number of people whom the guest brings that the answer is based on.
  /// - Throws: ``MusterError``: `superseded`, `not-a-host`, `event-not-found`, `guest-not-found`, `event-cancelled`,
  ///   `event-archived`; `approval-pending` until the guest is approved; `answer-proposed` while an account decides;
  ///   `no-room` if there is no room for the party
  @discardableResult
  public func setAnswer(
    of guestID: Guest.ID, at id: Event.ID, to answer: Answer, ifStatus: GuestStatus? = nil, ifPlusOnes: Int? = nil,
    key: IdempotencyKey = .random()
  ) async throws -> Event {
    let body = AnswerSetting(status: answer, ifStatus: ifStatus, ifPlusOnes: ifPlusOnes)
    return try await caller.get(.write(.setAnswer(id, guestID), body, key: key))
  }

  /// Admits a guest who came through a link with `approval`. A user may then answer; the answer of a visitor applies.
  /// To turn the guest away, use ``withdraw(_:from:key:)``.
  ///
  /// - Parameter guestID: the ``Guest/id``.
  /// - Throws: ``MusterError``: `not-a-host`, `event-not-found`, `guest-not-found`, `event-cancelled`,
  ///   `event-archived`; `no-room` if the party is larger than the event
  @discardableResult
  public func approve(_ guestID: Guest.ID, at id: Event.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await approve(guestID, at: id, seenIn: nil, key: key)
  }

  /// - Parameter eTag: of the copy of the event with its guests in which the host has seen the guest. The call is refused
  ///   with `lost-update` if the guest has asked again since.
  func approve(_ guestID: Guest.ID, at id: Event.ID, seenIn eTag: String?, key: IdempotencyKey) async throws -> Event {
    var call = APICall.write(.approveGuest(id, guestID), key: key)
    call.headers["If-Match"] = eTag
    return try await caller.get(call)
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
