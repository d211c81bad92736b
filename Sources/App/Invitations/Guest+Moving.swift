import Postgres

/// The steps that answers of invitees and of visitors share.
extension Guest {
  /// The row of a guest.
  enum Key: Sendable {
    case invitee(User.ID)
    case visitor(Visitor.ID)
  }

  /// Writes the new state of a guest's group, and touches the lists that show it. The caller holds the lock on the
  /// event, and has decided with ``Event/Places``.
  static func move(
    _ guest: Key, at event: Event.ID, from old: Invitation.Group, to new: Invitation.Group, in change: Change
  ) throws {
    let time = answeredAt(event, from: old.status, to: new.status)
    let state: SQL = "status = \(new.status), plus_ones = \(Int32(new.plusOnes)), answered_at = \(time)"
    switch guest {
    case .invitee(let user):
      try change.write("UPDATE invitations SET \(state) WHERE event_id = \(event) AND user_id = \(user)")
      change.touch(.events, .invitations, of: user)
    case .visitor(let id):
      try change.write("UPDATE visitors SET \(state), wanted = NULL WHERE id = \(id)")
    }
    try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
    Invitation.touchWhoSeesCounts(of: [event], in: change)
  }

  /// The time of an answer, in SQL. Later requests wait behind all others, even in the same microsecond or after the
  /// clock was set back. A group that waits already keeps its time.
  static func answeredAt(
    _ event: Event.ID, from old: Invitation.Status? = nil, to new: Invitation.Status
  ) -> SQL {
    switch new {
    case .waitlisted where old == .waitlisted: "answered_at"
    case .waitlisted:
      """
      greatest(clock_timestamp(), (
        SELECT max(answered_at) + interval '1 microsecond' FROM event_guests
        WHERE event_id = \(event) AND status = 'waitlisted'
      ))
      """
    case .invited, .going, .maybe, .declined, .pending: "clock_timestamp()"
    }
  }
}
