import Postgres

extension Event {
  /// Changes an event that the creator may still change; an unchanged plan changes nothing.
  ///
  /// - Parameter version: refused with 412 if the event has been edited since.
  static func edit(
    _ id: ID, by creator: User.ID, ifVersion version: Int?, in change: Change,
    _ edit: @Sendable (Plan) throws -> Plan
  ) async throws {
    let row = try await lock(id, by: creator, in: change)
    try checkIsOpen(row)
    if let version, try row["version"] != version { throw AppError.lostUpdate }
    let old = try Plan(row: row)
    let new = try edit(old)
    let differences = new.differences(from: old)
    guard !differences.isEmpty else { return }
    // Of a start that has not moved nobody is reminded twice.
    let remindAt: SQL = new.startTime == old.startTime ? "remind_at" : "\(new.remindAt())"
    try change.write(
      """
      UPDATE events
      SET title = \(new.title), note = \(new.note), start_time = \(new.startTime), end_time = \(new.endTime),
        time_zone = \(new.timeZone), location_name = \(new.location?.name), latitude = \(new.location?.latitude),
        longitude = \(new.location?.longitude), capacity = \(new.capacity.map(Int32.init)),
        live_until = \(new.liveUntil), remind_at = \(remindAt), version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, of: creator)
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: Invitation.guestsComing(to: id), about: .eventUpdated(id, new.title, differences, by: creator))
    // Nobody was promoted while it was over; put off, it is not over any more.
    if new.capacity != old.capacity || new.liveUntil > old.liveUntil {
      try await Invitation.promoteWaiting(at: [id], by: creator, in: change)
    }
  }

  /// Cancels an event that is still to be, for good: it stays readable, and nothing of it changes any more. Everybody
  /// invited who has not declined is told. Repeating it changes nothing.
  ///
  /// - Parameter version: refused with 412 if the event has been edited since.
  static func cancel(_ id: ID, by creator: User.ID, ifVersion version: Int?, in change: Change) async throws {
    let row = try await lock(id, by: creator, in: change)
    // Asked for again because the answer was lost, it names the version from before.
    if try row["status"] == Status.cancelled { return }
    try checkIsOpen(row)
    if let version, try row["version"] != version { throw AppError.lostUpdate }
    try change.write(
      """
      UPDATE events
      SET status = 'cancelled', remind_at = NULL, version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, of: creator)
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: Invitation.guestsComing(to: id), about: .eventCancelled(id, try row["title"], by: creator))
  }

  /// Locks an event that its creator is about to change, before anything else is read: who is invited or answers at this
  /// moment waits, or is seen from here on.
  ///
  /// - Returns: its plan's columns, `status`, `version`, `is_archived`, and `total`, the number of invitations.
  static func lock(_ id: ID, by creator: User.ID, in change: Change) async throws -> Row {
    let row = try await change.first(
      """
      SELECT creator_id, title, note, start_time, end_time, time_zone, location_name, latitude, longitude, capacity,
        status, version, archived_at IS NOT NULL AS is_archived, \(total) AS total
      FROM events WHERE id = \(id)
      FOR NO KEY UPDATE
      """)
    guard let row, try (row["creator_id"] as User.ID?) == creator else {
      throw try await refusal(id, for: creator, in: change)
    }
    return row
  }

  /// - Parameter row: a locked one, with `status` and `is_archived`.
  static func checkIsOpen(_ row: Row) throws {
    if try row["status"] == Status.cancelled { throw AppError.eventCancelled }
    if try row["is_archived"] { throw AppError.eventArchived }
  }

  /// Why somebody who is not the creator may not change an event: because it is not theirs, if they may see it at all.
  private static func refusal(_ id: ID, for user: User.ID, in change: Change) async throws -> AppError {
    let invited = try await change.first("SELECT 1 FROM invitations WHERE event_id = \(id) AND user_id = \(user)")
    return invited == nil ? AppError.eventNotFound : AppError.notTheCreator
  }
}
