import Postgres

/// The answers of invitees.
extension Invitation {
  /// Sets a guest's answer. "Going" puts the guest on the waiting list, with their plus-ones, if not all of them find a
  /// place, or if others wait already. Giving up places promotes the guests who have waited longest. The same answer
  /// again changes nothing: a waiting guest keeps their place in the line, even with another number of plus-ones.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the guest brings. Nil keeps the number.
  ///   - host: the host who sets the answer, who may do so after the deadline.
  /// - Throws: what ``Event/Places/group(after:bringing:from:isPast:isSetByHost:)`` throws.
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
    let old = Group(status: try invitation["status"], plusOnes: try invitation["plus_ones"])
    let places = try await Event.Places.read(eventRow, of: event, in: change)
    let new = try places.group(
      after: answer, bringing: plusOnes, from: old, isPast: try eventRow["is_past_answers"], isSetByHost: host != nil)
    guard new != old else { return }
    try Guest.move(.invitee(guest), at: event, from: old, to: new, in: change)
    change.notify(
      hosts,
      about: .invitationAnswered(
        event, title, by: try Person(row: person), new.status, with: new.plusOnes, setBy: host?.id))
    if let host { change.notify(guest, about: .answerSet(event, title, new.status, by: host)) }
    try await promoteWaiting(at: event, after: old, places, by: .user(host?.id ?? guest), in: change)
  }
}

extension AppError {
  static let ownEvent = AppError(.conflict, "own-event", "You are a host of this event, not a guest.")
  static let answersClosed = AppError(
    .conflict, "answers-closed", "The deadline for answers has passed. Ask a host to set your answer.")
  static let approvalPending = AppError(
    .conflict, "approval-pending", "A host must approve the guest first. Until then, the answer cannot be set.")
}
