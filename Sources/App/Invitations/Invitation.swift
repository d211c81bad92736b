import Postgres

/// A guest's invitation to an event, with the answer.
struct Invitation: Sendable {
  enum Status: String, CaseIterable, SQLValue {
    case invited, going, maybe, declined, waitlisted
    /// Waits for a host's approval.
    case pending

    /// The answers that a guest may give.
    static let possibleAnswers = [going, maybe, declined]
  }

  /// The maximum number of guests of one event.
  static let maximumGuests = 10_000

  let event: Event
  let status: Status
  let invitedAt: Timestamp

  init(row: Row) throws {
    try self.init(row, of: try Event(row: row))
  }

  private init(_ row: Row, of event: Event) throws {
    self.event = event
    status = try row["my_status"]
    invitedAt = try row["invited_at"]
  }

  /// A user's invitations to live events, newest first.
  ///
  /// - Parameter showsParticipants: as in ``Event/list(archived:of:showsParticipants:page:in:)``.
  static func list(
    of user: User.ID, status: Status?, showsParticipants: Bool = false, page: PageRequest, in database: some Querying
  ) async throws -> List<Invitation> {
    let mine: SQL = """
      (
        SELECT event_id, status AS my_status, plus_ones AS my_plus_ones, invited_at
        FROM invitations WHERE user_id = \(user) AND \(Event.isLive)
      )
      """
    var source: SQL = "\(Event.shown(mine, to: user)) WHERE true"
    if let status { source += " AND m.my_status = \(status)" }
    let query = Keyset(
      list: status == nil ? .invitations : .invitationsByStatus, columns: "\(Event.columns), m.invited_at",
      source: source, time: "m.invited_at", id: "e.id", order: .descending)
    if showsParticipants {
      return try await List.read(page: page, query: query, in: database) {
        Event.withParticipants($0, order: $1, atMost: Event.participantsListed, for: user)
      } item: {
        try Invitation($0, of: try Event(withParticipants: $0))
      }
    }
    // Clients cache only the unfiltered list, so a filtered list has no stamp.
    if status != nil { return try await List.read(page: page, query: query, in: database, item: Invitation.init(row:)) }
    return try await List.read(
      .invitations, of: user, page: page, query: query, in: database, item: Invitation.init(row:))
  }

  /// Invites friends of the host, all or none. Existing invitations stay unchanged. A friend whom a block hides from
  /// another host cannot be invited. The caller holds the locks on the event and on all users.
  ///
  /// - Parameters:
  ///   - field: the request field that names the guests, for errors.
  ///   - total: the number of existing guests.
  static func invite(
    _ guests: [User.ID], named field: String, to event: Event.ID, titled title: String, beside total: Int,
    by host: User.ID, in change: Change
  ) async throws {
    guard !guests.isEmpty else { return }
    let rows = try await change.rows(
      """
      SELECT friend_id AS id, false AS is_invited, \(Event.hides("friend_id", fromHostsOf: event)) AS is_hidden,
        friend_id IN (SELECT user_id FROM removed_hosts WHERE event_id = \(event)) AS was_host
      FROM friends
      WHERE user_id = \(host) AND friend_id = ANY(\(guests)) AND \(User.visible("friend_id", to: host))
      UNION ALL
      SELECT user_id, true, false, false FROM invitations
      WHERE event_id = \(event) AND user_id = ANY(\(guests)) AND \(User.visible("user_id", to: host))
      UNION ALL
      -- Hosts have no invitation. Inviting a host is as harmless as inviting a guest again.
      SELECT user_id, true, false, false FROM event_hosts
      WHERE event_id = \(event) AND user_id = ANY(\(guests)) AND user_id <> \(host)
        AND \(User.visible("user_id", to: host))
      """)
    let known = Set<User.ID>(try rows.map { try $0["id"] })
    let invited = Set<User.ID>(try rows.filter { try $0["is_invited"] }.map { try $0["id"] })
    let hidden = Set<User.ID>(try rows.filter { try $0["is_hidden"] }.map { try $0["id"] }).subtracting(invited)
    let errors = guests.enumerated().compactMap { index, guest -> FieldError? in
      let field = "\(field)[\(index)]"
      if !known.contains(guest) { return FieldError(field: field, code: .notAFriend, message: "is not a friend") }
      guard hidden.contains(guest) else { return nil }
      return FieldError(field: field, code: .notAllowed, message: "cannot be invited to this event")
    }
    guard errors.isEmpty else { throw AppError.invalid(errors) }
    let new = Array(known.subtracting(invited))
    guard !new.isEmpty else { return }
    guard total + new.count <= maximumGuests else {
      throw AppError.invalid(field, .outOfRange, "would exceed the event's limit of \(maximumGuests) guests")
    }
    try add(new, to: event, beside: total, in: change)
    let formerHosts: [User.ID] = try rows.filter { try $0["was_host"] }.map { try $0["id"] }
    if !formerHosts.isEmpty { try change.write(Event.readmitting(formerHosts, to: event)) }
    guard let hostRow = try await change.first("SELECT \(Person.columns("u")) FROM users AS u WHERE u.id = \(host)")
    else { throw AppError.userNotFound }
    change.notify(new, about: .eventInvited(event, title, by: try Person(row: hostRow)))
  }

  /// Adds guests to an event, and touches the lists that show it. The caller holds the locks on the event, its hosts
  /// and the new guests, and has checked that they may be guests and are not guests yet.
  ///
  /// - Parameters:
  ///   - status: `invited`, or `pending` until a host approves.
  ///   - total: the number of existing guests.
  static func add(
    _ new: [User.ID], as status: Status = .invited, to event: Event.ID, beside total: Int, in change: Change
  ) throws {
    try change.write(
      """
      INSERT INTO invitations (event_id, user_id, status)
      SELECT \(event), user_id, \(status) FROM unnest(\(new)) AS user_id
      """)
    try change.write("UPDATE events SET \(status.count) = \(status.count) + \(new.count) WHERE id = \(event)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      // The lists of existing guests show new counts, or show none from now on.
      change.touch(.events, .invitations, ofUsersIn: Self.guests(of: event))
    } else {
      change.touch(.events, .invitations, ofUsersIn: "SELECT unnest(\(new))")
    }
  }

  /// A query of the guests of an event.
  static func guests(of event: Event.ID) -> SQL {
    "SELECT user_id FROM invitations WHERE event_id = \(event)"
  }

  /// A query of the guests of an event who have not declined.
  static func guestsComing(to event: Event.ID) -> SQL {
    "SELECT user_id FROM invitations WHERE event_id = \(event) AND status <> 'declined'"
  }

  /// Touches the lists that show the counts of events: their hosts' lists, and those of all guests while there are
  /// few.
  static func touchWhoSeesCounts(of events: [Event.ID], in change: Change) {
    change.touch(.events, ofUsersIn: Event.hosts(of: events))
    change.touch(
      .events, .invitations,
      ofUsersIn: """
        SELECT i.user_id
        FROM events AS e
        JOIN invitations AS i ON i.event_id = e.id
        WHERE e.id = ANY(\(events)) AND \(Event.total) <= \(Event.maximumCounted)
        """)
  }
}

extension Invitation {
  /// Reminds the guests of an open event who have not answered, each at most once a day. Guests whom the host does not
  /// see are left out.
  ///
  /// - Returns: the number of reminded guests.
  static func remind(of event: Event.ID, by host: User.ID, in change: Change) async throws -> Int {
    let row = try await Event.lock(event, by: host, in: change)
    let phase = try Event.Phase(row: row)
    try phase.checkIsOpen()
    // No one is asked for an answer to an event that has begun.
    let hasBegun = try (row["start_time"] as Timestamp) <= .now()
    if hasBegun || phase.isPastAnswers { throw AppError.answersClosed }
    let results = try await change.pipeline(
      """
      UPDATE invitations SET reminded_at = now()
      WHERE event_id = \(event) AND status = 'invited' AND \(User.visible("user_id", to: host))
        AND (reminded_at IS NULL OR reminded_at <= now() - interval '1 day')
      """,
      "SELECT \(Person.columns("u")) FROM users AS u WHERE u.id = \(host)")
    guard let person = results[1].first else { throw AppError.sessionEnded }
    let count = results[0].affected
    if count > 0 {
      // One notice for all. In this transaction, now() is the time that was just written.
      change.notify(
        usersIn: """
          SELECT user_id FROM invitations
          WHERE event_id = \(event) AND status = 'invited' AND reminded_at = now()
          """,
        about: .answerReminder(event, try row["title"], by: try Person(row: person)))
    }
    return count
  }
}
