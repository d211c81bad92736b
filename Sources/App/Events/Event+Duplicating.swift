import Postgres

extension Event {
  /// When a copy of an event takes place.
  struct CopyTimes: Sendable {
    let startTime: Timestamp
    /// `.keep`: the copy is as long as the event.
    let endTime: Edit<Timestamp?>
  }

  /// Copies an event that the user hosts, in any state, to a new event that they create. The deadline for answers keeps
  /// its distance from the start, and is left out if it would have passed already.
  ///
  /// - Parameter invites: whether to invite the event's guests who are still friends of the host.
  static func duplicate(
    _ id: ID, as copy: ID, at times: CopyTimes, invites: Bool, by host: User.ID, in change: Change
  ) async throws {
    // A first look, because users are locked before events.
    let guests: [User.ID] =
      invites ? try await change.rows(friendlyGuests(of: id, to: host)).map { try $0["user_id"] } : []
    guard try await change.lock(users: guests + [host], for: .share).contains(host) else {
      throw AppError.sessionEnded
    }
    let old: Plan = try await lock(id, by: host, in: change)["plan"]
    let plan = old.moved(to: times)
    guard plan.endsAfterStart else { throw AppError.invalid("endTime", .outOfRange, Plan.endRule) }
    let friends: [User.ID] =
      invites
      ? try await change.rows("\(friendlyGuests(of: id, to: host)) AND f.friend_id = ANY(\(guests))")
        .map { try $0["user_id"] } : []
    try await insert(copy, plan, inviting: friends, by: host, in: change)
  }

  /// A query of the guests of an event who are friends of a host.
  private static func friendlyGuests(of id: ID, to host: User.ID) -> SQL {
    """
    SELECT i.user_id
    FROM invitations AS i
    JOIN friends AS f ON f.user_id = \(host) AND f.friend_id = i.user_id
    WHERE i.event_id = \(id) AND \(User.visible("i.user_id", to: host))
    """
  }
}

extension Event.Plan {
  /// The same plan at another time.
  fileprivate func moved(to times: Event.CopyTimes, now: Timestamp = .now()) -> Event.Plan {
    func shifted(_ time: Timestamp) -> Timestamp? {
      let moved = time.microseconds + (times.startTime.microseconds - startTime.microseconds)
      return Timestamp.years1To9999.contains(moved) ? Timestamp(microseconds: moved) : nil
    }
    var copy = self
    copy.startTime = times.startTime
    copy.endTime = times.endTime.applied(to: endTime.flatMap(shifted))
    copy.answerBy = answerBy.flatMap(shifted).flatMap { $0 > now ? $0 : nil }
    return copy
  }
}
