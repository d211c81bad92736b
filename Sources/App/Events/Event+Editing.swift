import Postgres

extension Event {
  /// Changes an event on behalf of a host. A plan that does not change writes nothing.
  ///
  /// - Parameter versions: the versions that the client has read. If the event has another one, the change gets 412.
  static func edit(
    _ id: ID, by host: User.ID, ifVersionIn versions: Set<Int>?, in change: Change,
    _ edit: @Sendable (Plan, Offsets) throws -> (Plan, Offsets)
  ) async throws {
    let row = try await lock(id, by: host, in: change)
    try checkIsOpen(row)
    if let versions, try !versions.contains(row["version"]) { throw AppError.lostUpdate }
    let old: Plan = try row["plan"]
    let oldOffsets: Offsets = try row["offsets"]
    let (new, offsets) = try edit(old, oldOffsets)
    let differences = new.differences(from: old)
    guard !differences.isEmpty else {
      // The same instant can be another reading: where the clocks skip half past two, it is half past three. Only later
      // rules make a difference, so no client has anything new to read.
      if offsets != oldOffsets {
        change.noteQuietWrite()
        try change.write("UPDATE events SET \(offsets.assignments) WHERE id = \(id)")
      }
      return
    }
    // If the start has not moved, guests must not get a second reminder.
    let remindAt: SQL = new.startTime == old.startTime ? "remind_at" : "\(new.remindAt())"
    try change.write(
      """
      UPDATE events
      SET \(Plan.columns.assignments(from: new)), live_until = \(new.liveUntil), remind_at = \(remindAt),
        \(offsets.assignments), version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, ofUsersIn: hosts(of: id))
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: participants(in: id), about: .eventUpdated(id, new.title, differences, by: host))
    if try row["visitor_count"] > 0 {
      change.mail(.visitors(.updated, at: id, fields: differences.map(\.field)))
    }
    // While an event is over, no guest is promoted. Postponing it can make it open again.
    if new.capacity != old.capacity || new.liveUntil > old.liveUntil {
      try await Invitation.promoteWaiting(at: [id], by: .user(host), in: change)
    }
  }

  /// Cancels an event that is still open. It stays readable and can never change again. The co-hosts and all guests
  /// who have not declined are notified. Repeating the call changes nothing.
  ///
  /// - Parameter versions: the versions that the client has read. If the event has another one, the change gets 412.
  static func cancel(_ id: ID, by creator: User.ID, ifVersionIn versions: Set<Int>?, in change: Change) async throws {
    let row = try await lock(id, byCreator: creator, in: change)
    // Before the version check: a client that retries after a lost response sends the version from before.
    if try row["status"] == Status.cancelled { return }
    try checkIsOpen(row)
    if let versions, try !versions.contains(row["version"]) { throw AppError.lostUpdate }
    try change.write(
      """
      UPDATE events
      SET status = 'cancelled', remind_at = NULL, version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, ofUsersIn: hosts(of: id))
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: participants(in: id), about: .eventCancelled(id, try row["title"], by: creator))
    if try row["visitor_count"] > 0 { change.mail(.visitors(.cancelled, at: id)) }
    try await Proposal.forgetNotices(about: [id], in: change)
  }

  /// Locks an event before a host changes it. Call it before any other read: concurrent invitations and answers then
  /// either wait, or are visible to the reads that follow.
  ///
  /// - Returns: `plan`, `offsets`, `creator_id`, `title`, `start_time`, `status`, `version`, `is_archived`, `is_past_answers`,
  ///   `is_over`, the columns of ``Places``, `visitor_count`, and `total`, the number of guests.
  static func lock(_ id: ID, by host: User.ID, in change: Change) async throws -> Row {
    try await lock(id, by: host, as: [.creator, .host], else: .notAHost, in: change)
  }

  /// The same before its creator changes it.
  static func lock(_ id: ID, byCreator creator: User.ID, in change: Change) async throws -> Row {
    try await lock(id, by: creator, as: [.creator], else: .notTheCreator, in: change)
  }

  private static func lock(
    _ id: ID, by user: User.ID, as roles: [Role], else refusal: AppError, in change: Change
  ) async throws -> Row {
    guard let row = try await change.first(locking(id)) else { throw AppError.eventNotFound }
    if try (row["creator_id"] as User.ID?) == user { return row }
    // After the lock, in a statement of its own: the user may have been made a host, or removed, meanwhile.
    let status: String? = try await change.first("SELECT \(myStatus(of: user, at: id)) AS status")?["status"]
    // A guest may know that the event exists, other users may not.
    guard let status else { throw AppError.eventNotFound }
    guard roles.contains(Role(status: status)) else { throw refusal }
    return row
  }

  private static let locking = CompiledSQL { (id: SQLArgument<ID>) in
    """
    SELECT creator_id, title, start_time, \(Plan.record("events")) AS plan, \(Offsets.record) AS offsets, \(Places.columns), visitor_count, status,
      version, archived_at IS NOT NULL AS is_archived, \(isPastAnswers), \(isOver), \(total) AS total
    FROM events WHERE id = \(id)
    FOR NO KEY UPDATE
    """
  }

  /// Whether the deadline for answers has passed, as a column of `events` named `is_past_answers`.
  static let isPastAnswers: SQL = "coalesce(answer_by < clock_timestamp(), false) AS is_past_answers"

  /// - Parameter row: a locked row of `events`, with `status` and `is_archived`.
  static func checkIsOpen(_ row: Row) throws {
    if try row["status"] == Status.cancelled { throw AppError.eventCancelled }
    if try row["is_archived"] { throw AppError.eventArchived }
  }
}
