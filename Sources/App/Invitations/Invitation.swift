import Postgres

/// A guest's invitation to an event, with the answer.
struct Invitation: Sendable {
  enum Status: String, CaseIterable, SQLValue {
    case invited, going, maybe, declined, waitlisted
  }

  /// The answers that a guest may give.
  static let answers: [Status] = [.going, .maybe, .declined]
  /// The maximum number of guests in one request.
  static let maximumBatch = 500
  /// The maximum number of guests of one event.
  static let maximumGuests = 10_000

  private(set) var event: Event
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
    var source: SQL = """
      (
        SELECT event_id, status AS my_status, plus_ones AS my_plus_ones, invited_at
        FROM invitations WHERE user_id = \(user)
      ) AS m
      JOIN events AS e ON e.id = m.event_id
      LEFT JOIN users AS c ON c.id = e.creator_id AND \(User.visible("c.id", to: user))
      CROSS JOIN \(Event.coHosts(seenBy: user))
      WHERE e.archived_at IS NULL
      """
    if let status { source += " AND m.my_status = \(status)" }
    let query = Keyset(
      list: status == nil ? .invitations : .invitationsByStatus, columns: "\(Event.columns), m.invited_at",
      source: source, time: "m.invited_at", id: "e.id", order: .descending)
    if showsParticipants {
      return try await List.read(page: page, query: query, in: database) {
        Event.withParticipants($0, order: $1, atMost: Event.participantsListed, for: user)
      } item: {
        try Invitation($0, of: try Event(withParticipant: $0))
      } more: {
        try $0.event.addParticipant($1)
      }
    }
    // Clients cache only the unfiltered list, so a filtered list has no stamp.
    if status != nil { return try await List.read(page: page, query: query, in: database, item: Invitation.init(row:)) }
    return try await List.read(
      .invitations, of: user, page: page, query: query, in: database, item: Invitation.init(row:))
  }

  /// Invites friends of the host, all or none. Existing invitations stay unchanged. The caller holds the locks on the
  /// event and on all users.
  ///
  /// - Parameters:
  ///   - field: the request field that names the guests, for errors.
  ///   - total: the number of existing invitations.
  static func invite(
    _ guests: [User.ID], named field: String, to event: Event.ID, titled title: String, beside total: Int,
    by host: User.ID, in change: Change
  ) async throws {
    guard !guests.isEmpty else { return }
    let rows = try await change.rows(
      """
      SELECT friend_id AS id, false AS is_invited FROM friends
      WHERE user_id = \(host) AND friend_id = ANY(\(guests)) AND \(User.visible("friend_id", to: host))
      UNION ALL
      SELECT user_id, true FROM invitations
      WHERE event_id = \(event) AND user_id = ANY(\(guests)) AND \(User.visible("user_id", to: host))
      UNION ALL
      -- Hosts hold no invitation. To invite one is as harmless as to invite a guest again.
      SELECT user_id, true FROM event_hosts
      WHERE event_id = \(event) AND user_id = ANY(\(guests)) AND user_id <> \(host)
        AND \(User.visible("user_id", to: host))
      """)
    let known = Set<User.ID>(try rows.map { try $0["id"] })
    let strangers = guests.enumerated().filter { !known.contains($0.element) }
    guard strangers.isEmpty else {
      throw AppError.invalid(
        strangers.map { FieldError(field: "\(field)[\($0.offset)]", code: .notAFriend, message: "is not a friend") })
    }
    let invited = Set<User.ID>(try rows.filter { try $0["is_invited"] }.map { try $0["id"] })
    let new = Array(known.subtracting(invited))
    guard !new.isEmpty else { return }
    guard total + new.count <= maximumGuests else {
      throw AppError.invalid(field, .outOfRange, "would exceed the event's limit of \(maximumGuests) guests")
    }
    try add(new, to: event, beside: total, in: change)
    guard let hostRow = try await change.first("SELECT \(Person.columns("u")) FROM users AS u WHERE u.id = \(host)")
    else { throw AppError.userNotFound }
    change.notify(new, about: .eventInvited(event, title, by: try Person(row: hostRow)))
  }

  /// Adds guests to an event, and touches the lists that show it. The caller holds the locks on the event, its hosts
  /// and the new guests, and has checked that they may be guests and are none yet.
  ///
  /// - Parameter total: the number of existing invitations.
  static func add(_ new: [User.ID], to event: Event.ID, beside total: Int, in change: Change) throws {
    try change.write(
      "INSERT INTO invitations (event_id, user_id) SELECT \(event), user_id FROM unnest(\(new)) AS user_id")
    try change.write("UPDATE events SET invited_count = invited_count + \(new.count) WHERE id = \(event)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      // The lists of existing guests show new counts, or show none from now on.
      change.touch(.events, .invitations, ofUsersIn: Self.guests(of: event))
    } else {
      change.touch(.events, .invitations, ofUsersIn: "SELECT unnest(\(new))")
    }
  }

  /// Withdraws an invitation to an open event on behalf of a host. A place that becomes free goes to the guest who has
  /// waited longest. The guest loses all earlier notifications about the event, and is notified, unless they have
  /// declined. Repeating the call changes nothing.
  static func withdraw(
    from guest: User.ID, to event: Event.ID, by host: User.ID, in change: Change
  ) async throws {
    let row = try await Event.lock(event, by: host, in: change)
    let status: Status? = try await change.value(
      // To the host, a hidden guest does not exist.
      """
      SELECT status FROM invitations
      WHERE event_id = \(event) AND user_id = \(guest) AND \(User.visible("user_id", to: host))
      """)
    guard let status else { return }
    try Event.checkIsOpen(row)
    try await leave(where: "i.event_id = \(event) AND i.user_id = \(guest)", by: host, in: change)
    try forgetNotices(of: guest, about: event, in: change)
    if status != .declined { change.notify(guest, about: .invitationWithdrawn(event, try row["title"])) }
  }

  /// Sets a guest's answer. "Going" puts the guest on the waiting list, with their plus-ones, if not all of them find a
  /// place, or if others wait already. Giving up places promotes the guests who have waited longest. The same answer
  /// again changes nothing: a waiting guest keeps their place in the line, also with another number of plus-ones.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the guest brings. Nil keeps the number.
  ///   - host: the host who sets the answer, who may do so after the deadline.
  static func answer(
    _ answer: Status, plusOnes: Int? = nil, to event: Event.ID, by guest: User.ID, setBy host: Person? = nil,
    in change: Change
  ) async throws {
    // The lock on the event's row orders all answers to it, so no place is given twice.
    let rows = try await change.pipeline(
      """
      SELECT title, status, archived_at IS NOT NULL AS is_archived, \(Event.isPastAnswers), \(Event.Places.columns)
      FROM events WHERE id = \(event)
      FOR NO KEY UPDATE
      """,
      "SELECT status, plus_ones FROM invitations WHERE event_id = \(event) AND user_id = \(guest) FOR NO KEY UPDATE",
      "SELECT \(Person.columns("u")), ARRAY(\(Event.hosts(of: event))) AS hosts FROM users AS u WHERE u.id = \(guest)")
    guard let eventRow = rows[0].first, let person = rows[2].first else { throw AppError.eventNotFound }
    let hosts: [User.ID] = try person["hosts"]
    guard let invitation = rows[1].first else {
      throw hosts.contains(guest) ? AppError.ownEvent : AppError.eventNotFound
    }
    try Event.checkIsOpen(eventRow)
    let title: String = try eventRow["title"]
    let places = try Event.Places(row: eventRow)
    let old = Group(status: try invitation["status"], plusOnes: try invitation["plus_ones"])
    let new = try places.group(after: answer, bringing: plusOnes, from: old)
    guard new != old else { return }
    if try host == nil && eventRow["is_past_answers"] { throw AppError.answersClosed }
    // Later requests wait behind all others, even in the same microsecond or after the clock was set back. A group that
    // waits already keeps its time.
    let time: SQL =
      switch (old.status, new.status) {
      case (.waitlisted, .waitlisted): "answered_at"
      case (_, .waitlisted):
        """
        greatest(clock_timestamp(), (
          SELECT max(answered_at) + interval '1 microsecond' FROM invitations
          WHERE event_id = \(event) AND status = 'waitlisted'
        ))
        """
      default: "clock_timestamp()"
      }
    try change.write(
      """
      UPDATE invitations SET status = \(new.status), plus_ones = \(Int32(new.plusOnes)), answered_at = \(time)
      WHERE event_id = \(event) AND user_id = \(guest)
      """)
    try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
    change.notify(
      hosts,
      about: .invitationAnswered(
        event, title, by: try Person(row: person), new.status, with: new.plusOnes, setBy: host?.id))
    if let host { change.notify(guest, about: .answerSet(event, title, new.status, by: host)) }
    change.touch(.events, .invitations, of: guest)
    touchWhoSeesCounts(of: [event], in: change)
    // A group that waited and leaves or shrinks may have been the one that did not fit.
    if places.waiting > 0, old.status == .going || old.status == .waitlisted {
      try await promoteWaiting(at: [event], by: host?.id ?? guest, in: change)
    }
  }

  /// Gives the free places of events to the groups that have waited longest, up to the first group that does not fit.
  /// An event that is over promotes no one: a notice after the event would be wrong. The caller holds the locks on the
  /// events.
  ///
  /// - Parameter actor: the user whose change freed the places. Hosts are notified of promotions that they did not
  ///   cause. If nil, no host is notified.
  static func promoteWaiting(at events: [Event.ID], by actor: User.ID?, in change: Change) async throws {
    let promoted = try await change.rows(
      """
      UPDATE invitations AS i SET status = 'going'
      FROM (
        SELECT e.id AS event_id, first.user_id
        FROM events AS e
        CROSS JOIN LATERAL (
          SELECT user_id, sum(places) OVER (ORDER BY answered_at, user_id) AS places
          FROM (
            SELECT user_id, answered_at, 1 + plus_ones AS places FROM invitations
            WHERE event_id = e.id AND status = 'waitlisted'
            ORDER BY answered_at, user_id
            -- Each group needs a place at least, so a long list is read only as far as it can matter.
            LIMIT greatest(coalesce(e.capacity - e.going_count, e.waitlisted_count), 0)
          ) AS line
        ) AS first
        -- An event stays live for a day after its end.
        WHERE e.id = ANY(\(events)) AND e.live_until > clock_timestamp() + interval '24 hours'
          AND (e.capacity IS NULL OR e.going_count + first.places <= e.capacity)
      ) AS promoted
      JOIN users AS u ON u.id = promoted.user_id
      WHERE i.event_id = promoted.event_id AND i.user_id = promoted.user_id
      RETURNING i.event_id, i.plus_ones, \(Person.columns("u"))
      """)
    guard !promoted.isEmpty else { return }
    // A guest who is promoted at several events gets the notices in a fixed order.
    let guests = try promoted.map { row -> (event: Event.ID, person: Person, plusOnes: Int) in
      (try row["event_id"], try Person(row: row), try row["plus_ones"])
    }.sorted { ($0.event, $0.person.id) < ($1.event, $1.person.id) }
    let moved = try await change.rows(
      """
      UPDATE events AS e
      SET waitlisted_count = e.waitlisted_count - promoted.places, going_count = e.going_count + promoted.places
      FROM (
        SELECT event_id, sum(1 + plus_ones) AS places
        FROM unnest(\(guests.map(\.event)), \(guests.map { Int32($0.plusOnes) })) AS guest (event_id, plus_ones)
        GROUP BY event_id
      ) AS promoted
      WHERE e.id = promoted.event_id
      RETURNING e.id, e.title, ARRAY(SELECT user_id FROM event_hosts WHERE event_id = e.id) AS hosts
      """)
    let plans = try Dictionary(
      uniqueKeysWithValues: moved.map { row -> (Event.ID, (title: String, hosts: [User.ID])) in
        (try row["id"], (try row["title"], try row["hosts"]))
      })
    for (event, person, plusOnes) in guests {
      guard let (title, hosts) = plans[event] else { continue }
      change.touch(.events, .invitations, of: person.id)
      // A guest who brings fewer people than before, and so finds room, sees it in the response.
      if person.id != actor {
        change.notify(person.id, about: .waitlistPromoted(event, title, guest: person.id, with: plusOnes))
      }
      if let actor {
        change.notify(hosts, about: .guestPromoted(event, title, guest: person, with: plusOnes, by: actor))
      }
    }
    touchWhoSeesCounts(of: events, in: change)
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

extension AppError {
  static let ownEvent = AppError(.conflict, "own-event", "You are the host of this event, not a guest.")
  static let answersClosed = AppError(
    .conflict, "answers-closed", "The time to answer is over. Ask a host to set your answer.")
}
