import Postgres

/// Hosts' actions on answers.
extension Invitation {
  /// Sets the answer of a guest on behalf of a host, even after the deadline. The rules of the guest's own answers
  /// apply: "going" to a full event puts the guest on the waiting list. The other hosts are notified. An invitee is
  /// also notified, and a visitor with a confirmed address gets a mail.
  ///
  /// - Throws: ``AppError/guestNotFound`` if the host sees no such guest.
  static func set(
    _ answer: Status, of guest: Guest.ID, to event: Event.ID, by host: User.ID, in change: Change
  ) async throws {
    _ = try await Event.lock(event, by: host, in: change)
    let row = try await change.first(
      """
      SELECT user_id, \(Person.columns("u"))
      FROM event_guests AS g
      JOIN users AS u ON u.id = \(host)
      WHERE g.event_id = \(event) AND g.id = \(guest) AND \(Guest.isShown(to: host))
      """)
    guard let row else { throw AppError.guestNotFound }
    guard let user: User.ID = try row["user_id"] else {
      let visitor = Visitor.ID(rawValue: guest.rawValue)
      return try await Visitor.answer(answer, plusOnes: nil, to: event, by: visitor, setBy: host, in: change)
    }
    try await self.answer(answer, to: event, by: user, setBy: try Person(row: row), in: change)
  }

  /// Reminds the guests of an open event who have not answered, each at most once a day. Guests whom the host does not
  /// see are left out.
  ///
  /// - Returns: the number of reminded guests.
  static func remind(of event: Event.ID, by host: User.ID, in change: Change) async throws -> Int {
    let row = try await Event.lock(event, by: host, in: change)
    try Event.checkIsOpen(row)
    // No one is asked for an answer to an event that has begun.
    let hasBegun = try (row["start_time"] as Timestamp) <= .now()
    if try hasBegun || row["is_past_answers"] { throw AppError.answersClosed }
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

extension AppError {
  static let guestNotFound = AppError(.notFound, "guest-not-found", "The event has no such guest.")
}
