import Postgres

extension Event {
  /// Changes an event on behalf of a host. A plan that does not change writes nothing.
  ///
  /// - Parameter versions: the versions that the client has read. If the event has another one, a change gets 412.
  static func edit(
    _ id: ID, by host: User.ID, ifVersionIn versions: Set<Int>?, in change: Change,
    _ edit: @Sendable (Plan, Offsets) throws -> (Plan, Offsets)
  ) async throws {
    let row = try await lock(id, by: host, in: change)
    try Phase(row: row).checkIsOpen()
    let old: Plan = try row["plan"]
    let oldOffsets: Offsets = try row["offsets"]
    let isCurrent = try versions?.contains(row["version"]) ?? true
    let edited = Result { try edit(old, oldOffsets) }
    if !isCurrent, case .failure = edited { throw AppError.lostUpdate }
    let (new, offsets) = try edited.get()
    let differences = new.differences(from: old)
    guard isCurrent || differences.isEmpty else { throw AppError.lostUpdate }
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
    try announce(
      .eventUpdated(id, new.title, differences, by: host), mailing: .updated, fields: differences.map(\.field), to: id,
      row, in: change)
    // While an event is over, no guest is promoted. Postponing it can make it open again.
    if new.capacity != old.capacity || new.liveUntil > old.liveUntil {
      try await Guest.promoteWaiting(at: [id], by: .user(host), in: change)
    }
  }

  /// Cancels an event that is still open. It stays readable and can never change again. The co-hosts and all guests
  /// who have not declined are notified. Repeating the call changes nothing.
  ///
  /// - Parameter versions: the versions that the client has read. If the event has another one, the change gets 412.
  static func cancel(_ id: ID, by creator: User.ID, ifVersionIn versions: Set<Int>?, in change: Change) async throws {
    let row = try await lock(id, byCreator: creator, in: change)
    // Before the version check: a client that retries after a lost response sends the version from before.
    let phase = try Phase(row: row)
    if phase.isCancelled { return }
    try phase.checkIsOpen()
    if let versions, try !versions.contains(row["version"]) { throw AppError.lostUpdate }
    try change.write(
      """
      UPDATE events
      SET status = 'cancelled', remind_at = NULL, version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, ofUsersIn: hosts(of: id))
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    try announce(.eventCancelled(id, try row["title"], by: creator), mailing: .cancelled, to: id, row, in: change)
    try await Proposal.forgetNotices(about: [id], in: change)
  }

  /// Notifies the hosts of an event and its guests who have not declined: users by a notice, and visitors by mail.
  ///
  /// - Parameters:
  ///   - event: its locked row, with `visitor_count`. An event without visitors costs no statement about them.
  ///   - fields: the names of the event's properties that have changed.
  private static func announce(
    _ notice: Notice, mailing mail: VisitorMail.Kind, fields: [String] = [], to id: ID, _ event: Row, in change: Change
  ) throws {
    change.notify(usersIn: participants(in: id), about: notice)
    if try event["visitor_count"] > 0 { change.mail(.visitors(mail, at: id, fields: fields)) }
  }

  /// Locks an event before a host changes it. Call it before any other read: concurrent invitations and answers then
  /// either wait, or are visible to the reads that follow.
  ///
  /// - Returns: `plan`, `offsets`, `creator_id`, `title`, `start_time`, `version`, the columns of ``Phase`` and of
  ///   ``Places``, `visitor_count`, and `total`, the number of guests.
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
    SELECT creator_id, title, start_time, \(Plan.record("events")) AS plan, \(Offsets.record) AS offsets, \(Places.columns), visitor_count,
      version, \(Phase.columns), \(total) AS total
    FROM events WHERE id = \(id)
    FOR NO KEY UPDATE
    """
  }
}

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
  /// - Returns: false if the user has created an event with this id before. Nothing happens then.
  /// - Throws: ``AppError/idTaken``
  static func duplicate(
    _ id: ID, as copy: NewID<Event>, at times: CopyTimes, in zones: ZoneDatabase, invites: Bool, by host: User.ID,
    in change: Change
  ) async throws -> Bool {
    // Before the rights: the user may no longer be a host of the original.
    if copy.isGiven, try await isCreated(copy.value, by: host, in: change) { return false }
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
    return try await insert(copy, plan, offsets, inviting: friends, by: host, in: change)
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
