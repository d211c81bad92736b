import Postgres

extension Invitation {
  /// Withdraws an invitation to an open event on behalf of a host, or removes a visitor. A place that becomes free goes
  /// to the guest who has waited longest. An invitee loses all earlier notifications about the event and an offer to
  /// host it, and is notified, unless they have declined. Repeating the call changes nothing.
  static func withdraw(
    from guest: Guest.ID, to event: Event.ID, by host: User.ID, in change: Change
  ) async throws {
    let row = try await Event.lock(event, by: host, in: change)
    let found = try await change.first(
      // To the host, a hidden guest does not exist.
      """
      SELECT user_id, status,
        user_id IN (SELECT o.user_id FROM host_offers AS o WHERE o.event_id = \(event)) AS is_offered,
        EXISTS (
          SELECT FROM visitors AS v
          WHERE v.event_id = \(event) AND v.merges_into = event_guests.user_id AND v.proposed_at IS NOT NULL
        ) AS has_proposal
      FROM event_guests
      WHERE event_id = \(event) AND id = \(guest) AND \(Guest.isShown(to: host))
      """)
    guard let found else { return }
    try Event.Phase(row: row).checkIsOpen()
    guard let user: User.ID = try found["user_id"] else {
      try change.write(Visitor.freeingLinks(of: "v.id = \(guest)"))
      try await Visitor.leave(where: "v.id = \(guest)", by: .user(host), in: change)
      return try Visitor.forgetNotices(about: [guest], at: event, in: change)
    }
    try await leave(where: "i.event_id = \(event) AND i.user_id = \(user)", by: .user(host), in: change)
    if try found["has_proposal"] {
      // The guest would come back by accepting it.
      try await Visitor.remove(
        where: "v.event_id = \(event) AND v.merges_into = \(user) AND v.proposed_at IS NOT NULL", by: .user(host),
        in: change)
    }
    if try found["is_offered"] {
      try change.write("DELETE FROM host_offers WHERE event_id = \(event) AND user_id = \(user)")
    }
    try forgetNotices(of: user, about: event, in: change)
    let status: Status = try found["status"]
    if status != .declined { change.notify(user, about: .invitationWithdrawn(event, try row["title"])) }
  }

  /// Removes guests from guest lists. See ``Guest/leave(_:by:promotes:in:)``.
  ///
  /// - Parameter condition: on `invitations AS i`.
  static func leave(where condition: SQL, by cause: Cause, in change: Change) async throws {
    try await Guest.leave(
      """
      DELETE FROM invitations AS i WHERE \(condition)
      RETURNING i.event_id, i.user_id, i.status, i.plus_ones
      """, by: cause, in: change)
  }

  /// Deletes all notifications about an event that a user can no longer see: in the queue, in deliveries, and in the
  /// inbox. The caller has locked the event.
  ///
  /// - Parameter kind: the only type to delete; nil for all.
  static func forgetNotices(
    of user: User.ID, about event: Event.ID, ofType kind: Notice.Kind? = nil, in change: Change
  ) throws {
    let isOfType: SQL = kind.map { "type = \($0)" } ?? "true"
    let mine: SQL = "recipient_id = \(user) AND subject_id = \(event) AND \(isOfType)"
    // In this order: fan-out writes inbox items and deliveries, and the removal from the queue waits for it.
    try change.write(
      NotificationQueue.remove(
        """
        SELECT id, \(user) AS recipient_id FROM notification_queue
        WHERE subject_id = \(event) AND \(user) = ANY(recipient_ids) AND \(isOfType)
        """))
    // A delivery that is being sent stays, so that the next one waits for it.
    try change.write(Delivery.delete(where: "\(mine) AND lease IS NULL"))
    change.touch(.notifications, ofUsersIn: "SELECT recipient_id FROM notifications WHERE \(mine)")
    change.erase("DELETE FROM notifications WHERE \(mine)")
  }
}

extension Guest {
  /// Removes guests from guest lists and updates the counts. Places that become free go to the guests who have waited
  /// longest, and only these are notified. The caller holds the locks on the events.
  ///
  /// - Parameters:
  ///   - deletion: a DELETE that returns `event_id`, `user_id`, which is NULL for a visitor, `status` and `plus_ones`.
  ///   - cause: whose change this is.
  ///   - promotes: false if the caller gives the free places to those who wait.
  static func leave(
    _ deletion: SQL, by cause: Invitation.Cause, promotes: Bool = true, in change: Change
  ) async throws {
    let left = try await change.rows(
      """
      WITH gone AS (\(deletion)), sums AS (
        SELECT event_id, array_agg(user_id) FILTER (WHERE user_id IS NOT NULL) AS user_ids,
          count(*) FILTER (WHERE user_id IS NULL) AS visitors, sum(plus_ones) AS plus_ones,
          bool_or(status IN ('going', 'waitlisted')) AS held_or_waited,
          \(Invitation.Status.sums)
        FROM gone
        GROUP BY event_id
      )
      UPDATE events AS e
      SET \(Invitation.Status.subtraction), plus_ones_count = e.plus_ones_count - sums.plus_ones,
        visitor_count = e.visitor_count - sums.visitors
      FROM sums
      WHERE e.id = sums.event_id
      RETURNING e.id, coalesce(sums.user_ids, '{}') AS user_ids, e.archived_at IS NULL AS is_live,
        -- A party that waited may have been the one that did not fit.
        sums.held_or_waited AND \(Event.Phase.isOpen("e")) AND e.waitlisted_count > 0
          AS frees_place
      """)
    let live = try left.filter { try $0["is_live"] }
    let ids: [Event.ID] = try live.map { try $0["id"] }
    guard !ids.isEmpty else { return }
    for row in live {
      let users: [User.ID] = try row["user_ids"]
      for user in users { change.touch(.events, .invitations, of: user) }
    }
    // With one guest fewer, lists may show the counts again.
    Invitation.touchWhoSeesCounts(of: ids, in: change)
    let freed: [Event.ID] = try left.filter { try $0["frees_place"] }.map { try $0["id"] }
    if promotes, !freed.isEmpty { try await Invitation.promoteWaiting(at: freed, by: cause, in: change) }
  }
}

extension Invitation.Status {
  /// The places in each state, of a relation with `status` and `plus_ones`.
  static var sums: SQL {
    allCases.map { status -> SQL in
      "coalesce(sum(1 + plus_ones) FILTER (WHERE status = \(status)), 0) AS \(status.count)"
    }.joined(separator: ",\n")
  }

  fileprivate static var subtraction: SQL {
    allCases.map { status -> SQL in "\(status.count) = e.\(status.count) - sums.\(status.count)" }
      .joined(separator: ", ")
  }
}

/// The waiting list, which invitees and visitors share.
extension Invitation {
  /// Who caused a promotion.
  enum Cause {
    case user(User.ID)
    /// A visitor, or the end of a visitor's answer. No user needs to be left out.
    case visitor
    /// A block, which hosts must not notice.
    case block
  }

  /// Promotes after a guest's answer, if it may have freed places. A party that waited and leaves or shrinks may have
  /// been the one that did not fit.
  ///
  /// - Parameter places: as they were before the answer.
  static func promoteWaiting(
    at event: Event.ID, after old: Party, _ places: Event.Places, by cause: Cause, in change: Change
  ) async throws {
    guard places.waiting > 0, old.status == .going || old.status == .waitlisted else { return }
    try await promoteWaiting(at: [event], by: cause, in: change)
  }

  /// Gives the free places of events to the parties that have waited longest, up to the first party that does not fit.
  /// Parties that are larger than the whole event are skipped. An event that is over promotes no one: a notice after the
  /// event would be wrong. The caller holds the locks on the events.
  ///
  /// - Parameter cause: hosts are notified of promotions that they did not cause.
  static func promoteWaiting(at events: [Event.ID], by cause: Cause, in change: Change) async throws {
    let promoted = try await change.rows(promoting(at: events)).map(Promoted.init(row:))
    guard !promoted.isEmpty else { return }
    // A guest who is promoted at several events gets the notices in a fixed order.
    let guests = promoted.sorted { ($0.event, $0.id) < ($1.event, $1.id) }
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
    for guest in guests {
      guard let (title, hosts) = plans[guest.event] else { continue }
      notify(guest, title, hosts, by: cause, in: change)
    }
    touchWhoSeesCounts(of: events, in: change)
  }

  /// A guest who has got a place.
  private struct Promoted {
    let event: Event.ID
    let id: Guest.ID
    let plusOnes: Int
    /// Nil for a visitor.
    let person: Person?
    let name: String

    init(row: Row) throws {
      event = try row["event_id"]
      id = try row["guest_id"]
      plusOnes = try row["plus_ones"]
      let user: User.ID? = try row["id"]
      person = try user.map { _ in try Person(row: row) }
      name = try row["name"]
    }
  }

  private static func notify(
    _ guest: Promoted, _ title: String, _ hosts: [User.ID], by cause: Cause, in change: Change
  ) {
    let (event, plusOnes) = (guest.event, guest.plusOnes)
    var actor: User.ID?
    if case .user(let user) = cause { actor = user }
    if let person = guest.person {
      change.touch(.events, .invitations, of: person.id)
      // A guest who brings fewer people than before, and so finds room, sees it in the response.
      if person.id != actor {
        change.notify(person.id, about: .waitlistPromoted(event, title, guest: person.id, with: plusOnes))
      }
    } else {
      change.mail(.visitors(.promoted, at: event, only: guest.id))
    }
    if case .block = cause { return }
    change.notify(
      hosts,
      about: guest.person.map { .guestPromoted(event, title, guest: $0, with: plusOnes, by: actor) }
        ?? .visitorPromoted(event, title, guest: guest.id, named: guest.name, with: plusOnes, by: actor))
  }

  /// A statement that promotes, and returns the promoted.
  private static func promoting(at events: [Event.ID]) -> SQL {
    """
    WITH promoted AS MATERIALIZED (
      SELECT e.id AS event_id, first.id, first.user_id
      FROM events AS e
      CROSS JOIN LATERAL (
        SELECT id, user_id, sum(places) OVER (ORDER BY answered_at, id) AS places
        FROM (
          SELECT id, user_id, answered_at, 1 + plus_ones AS places FROM event_guests
          WHERE event_id = e.id AND status = 'waitlisted' AND (e.capacity IS NULL OR plus_ones < e.capacity)
          ORDER BY answered_at, id
          -- Each party needs a place at least, so a long list is read only as far as it can matter.
          LIMIT greatest(coalesce(e.capacity - e.going_count, e.waitlisted_count), 0)
        ) AS line
      ) AS first
      WHERE e.id = ANY(\(events)) AND NOT \(Event.Phase.isOver("e"))
        AND (e.capacity IS NULL OR e.going_count + first.places <= e.capacity)
    ),
    invitees AS (
      UPDATE invitations AS i SET status = 'going'
      FROM promoted
      WHERE i.event_id = promoted.event_id AND i.user_id = promoted.user_id
      RETURNING i.event_id, i.user_id, i.plus_ones
    ),
    visiting AS (
      UPDATE visitors AS v SET status = 'going'
      FROM promoted
      WHERE promoted.user_id IS NULL AND v.id = promoted.id
      RETURNING v.event_id, v.id, v.name, v.plus_ones
    )
    SELECT g.event_id, g.guest_id, g.plus_ones, coalesce(g.name, u.display_name) AS name, \(Person.columns("u"))
    FROM (
      SELECT event_id, user_id AS guest_id, user_id, NULL AS name, plus_ones FROM invitees
      UNION ALL
      SELECT event_id, id, NULL, name, plus_ones FROM visiting
    ) AS g
    LEFT JOIN users AS u ON u.id = g.user_id
    """
  }
}
