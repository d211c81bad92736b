import Postgres

/// Hosts' decisions about guests who came through a link with approval.
extension Guest {
  /// Approves a guest who waits for it. An invitee becomes `invited`, and is notified. A visitor's wanted answer
  /// applies, by the rules of all answers, and the other hosts are notified. Approving a guest again changes nothing.
  /// A visitor's answer then stays, although no one has confirmed the address.
  ///
  /// - Throws: ``AppError/guestNotFound``; ``AppError/eventArchived`` once the event has ended; ``AppError/noRoom`` if
  ///   the group has become larger than the event.
  static func approve(_ guest: ID, at event: Event.ID, by host: User.ID, in change: Change) async throws {
    let row = try await Event.lock(event, by: host, in: change)
    let rows = try await change.pipeline(
      """
      SELECT g.user_id, g.status, g.plus_ones, v.wanted, v.name,
        v.lapses_at IS NOT NULL AND v.confirmed_at IS NULL AS is_lapsing
      FROM event_guests AS g
      LEFT JOIN visitors AS v ON v.id = g.id AND g.user_id IS NULL
      WHERE g.event_id = \(event) AND g.id = \(guest)
        AND (g.user_id IS NULL OR \(User.visible("g.user_id", to: host)))
      """,
      "SELECT \(Person.columns("u")), ARRAY(\(Event.hosts(of: event))) AS hosts FROM users AS u WHERE u.id = \(host)")
    guard let found = rows[0].first else { throw AppError.guestNotFound }
    guard let hostRow = rows[1].first else { throw AppError.sessionEnded }
    let old = Invitation.Group(status: try found["status"], plusOnes: try found["plus_ones"])
    let visitor = Visitor.ID(rawValue: guest.rawValue)
    let isLapsing: Bool = try found["is_lapsing"] ?? false
    guard old.status == .pending else {
      if isLapsing { try keep(visitor, at: event, in: change) }
      return
    }
    // No one can come to an event that has ended, although it stays live for a day.
    try Event.checkIsNotOver(row)
    if let user: User.ID = try found["user_id"] {
      let new = Invitation.Group(status: .invited, plusOnes: old.plusOnes)
      try change.write(
        "UPDATE invitations SET status = 'invited' WHERE event_id = \(event) AND user_id = \(user)")
      try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
      change.touch(.events, .invitations, of: user)
      Invitation.touchWhoSeesCounts(of: [event], in: change)
      change.notify(user, about: .eventInvited(event, try row["title"], by: try Person(row: hostRow)))
      return
    }
    let wanted: Invitation.Status? = try found["wanted"]
    // Guests who decline need no approval. After a change of mind, they ask again.
    guard wanted != .declined else { return }
    if isLapsing { try keep(visitor, at: event, in: change) }
    let places = try await Event.Places.read(row, of: event, in: change)
    let new = try places.group(after: wanted ?? .maybe, bringing: nil, from: old)
    try move(.visitor(visitor), at: event, from: old, to: new, in: change)
    change.notify(
      try hostRow["hosts"] as [User.ID],
      about: .guestAnswered(
        event, try row["title"], guest: guest, named: try found["name"], new.status, with: new.plusOnes, by: host))
    change.mail(.visitors(.approved, at: event, only: visitor))
  }

  /// Keeps the answer of a visitor whose address no one has confirmed as long as all others.
  private static func keep(_ visitor: Visitor.ID, at event: Event.ID, in change: Change) throws {
    try change.write(
      """
      UPDATE visitors AS v SET lapses_at = (
        SELECT \(Visitor.erasureTime("e")) FROM events AS e WHERE e.id = v.event_id AND e.archived_at IS NOT NULL
      )
      WHERE v.id = \(visitor) AND v.event_id = \(event)
      """)
  }
}
