import Postgres

extension Event {
  /// When a copy of an event takes place.
  struct CopyTimes: Sendable {
    let startTime: GivenTime
    /// `.keep`: the copy is as long as the event.
    let endTime: Edit<GivenTime?>
  }

  /// Copies an event that the user hosts, in any state, to a new event that they create. The deadline for answers keeps
  /// its distance from the start, and is left out if it would have passed already.
  ///
  /// - Parameter invites: whether to invite the event's guests who are still friends of the host.
  static func duplicate(
    _ id: ID, as copy: ID, at times: CopyTimes, in zones: ZoneDatabase, invites: Bool, by host: User.ID,
    in change: Change
  ) async throws {
    // A first look, because users are locked before events.
    let guests: [User.ID] =
      invites ? try await change.rows(friendlyGuests(of: id, to: host)).map { try $0["user_id"] } : []
    guard try await change.lock(users: guests + [host], for: .share).contains(host) else {
      throw AppError.sessionEnded
    }
    let old: Plan = try await lock(id, by: host, in: change)["plan"]
    // With a made-up offset, a worker that knows the zone would move the copy.
    guard let zone = zones[old.timeZone] else {
      throw AppError.invalid("startTime", .outOfRange, "is in a time zone that this server does not know")
    }
    let (plan, offsets) = old.moved(to: times, in: zone, rules: zones.version)
    try plan.checkRules()
    let friends: [User.ID] =
      invites
      ? try await change.rows("\(friendlyGuests(of: id, to: host)) AND f.friend_id = ANY(\(guests))")
        .map { try $0["user_id"] } : []
    try await insert(copy, plan, offsets, inviting: friends, by: host, in: change)
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
  fileprivate func moved(
    to times: Event.CopyTimes, in zone: Zone, rules: String, now: Timestamp = .now()
  ) -> (Event.Plan, Event.Offsets) {
    let start = zone.time(times.startTime)
    func shifted(_ time: Timestamp) -> Timestamp? {
      let moved = time.microseconds + (start.time.microseconds - startTime.microseconds)
      return Timestamp.years1To9999.contains(moved) ? Timestamp(microseconds: moved) : nil
    }
    var copy = self
    copy.startTime = start.time
    let end = times.endTime.applied(to: endTime.flatMap(shifted).map(GivenTime.instant)).map(zone.time)
    copy.endTime = end?.time
    copy.answerBy = answerBy.flatMap(shifted).flatMap { $0 > now ? $0 : nil }
    var offsets = Event.Offsets(copy, in: zone, rules: rules)
    // They may be those before a gap.
    (offsets.start, offsets.end) = (start.offset, end?.offset)
    return (copy, offsets)
  }
}
