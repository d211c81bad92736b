import Postgres

extension Event {
  /// Moves events that ended a day ago from the live lists to the archive. Archiving is a write like any other: no list
  /// changes because time passes. One call archives events with at most about 10,000 guests in total, because one
  /// statement writes the stamps of all of them and must end in time.
  ///
  /// - Returns: the number of archived events.
  static func archive(endedBefore now: Timestamp, atMost limit: Int, in change: Change) async throws -> Int {
    let rows = try await change.rows(
      """
      SELECT id FROM events
      WHERE archived_at IS NULL AND id IN (
        SELECT id
        FROM (
          SELECT id, sum(guests) OVER (ORDER BY live_until, id) - guests AS before
          FROM (
            SELECT id, live_until, \(total) AS guests
            FROM events
            WHERE archived_at IS NULL AND live_until <= \(now)
            ORDER BY live_until, id
            LIMIT \(limit)
          ) AS due
        ) AS counted
        WHERE before < 10000
      )
      -- Checked again on the locked row: an edit may have postponed the event.
      AND live_until <= \(now)
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    let ids: [ID] = try rows.map { try $0["id"] }
    guard !ids.isEmpty else { return 0 }
    let visits = try await change.rows(
      """
      WITH archived AS (
        UPDATE events SET archived_at = \(now) WHERE id = ANY(\(ids)) RETURNING id, live_until, visitor_count
      )
      UPDATE visitors AS v SET lapses_at = \(Visitor.erasureTime("e"))
      FROM archived AS e
      WHERE e.visitor_count > 0 AND v.event_id = e.id AND v.lapses_at IS NULL
      RETURNING v.id, v.proposed_at IS NOT NULL AS is_proposed
      """)
    // A proposal ends with its event.
    let proposed = try visits.filter { try $0["is_proposed"] }.map { row -> Guest.ID in try row["id"] }
    if !proposed.isEmpty {
      try await Guest.leave(visitors: "v.id = ANY(\(proposed))", by: .visitor, in: change)
    }
    try await Proposal.forgetNotices(about: ids, in: change)
    change.touch(.events, ofUsersIn: hosts(of: ids))
    change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(ids))")
    return ids.count
  }

  /// Days for which an operator may keep archived events. At least so long, calendar feeds, inboxes and visitors' pages
  /// may still name an event.
  static let retentions = 180...36_500

  /// Deletes events that have been in the archive for long, with everything about them, and skips those that another
  /// transaction has locked. Like ``archive(endedBefore:atMost:in:)``, one call deletes about 10,000 guests at most.
  ///
  /// No one is notified, because nothing has happened to the event. No stamp moves: the archive has none, and no list
  /// with a stamp shows an event for so long.
  ///
  /// - Returns: the number of deleted events.
  static func deleteArchived(keptFor days: Int, atMost limit: Int, in change: Change) async throws -> Int {
    let isOver: SQL = """
      archived_at <= clock_timestamp() - make_interval(days => \(Int32(days))) AND visitor_count = 0
      """
    let rows = try await change.rows(
      """
      SELECT id FROM events
      WHERE id IN (
        SELECT id
        FROM (
          SELECT id, sum(guests) OVER (ORDER BY archived_at, id) - guests AS before
          FROM (
            SELECT id, archived_at, \(total) AS guests FROM events WHERE \(isOver)
            ORDER BY archived_at, id
            LIMIT \(limit)
          ) AS due
        ) AS counted
        WHERE before < 10000
      )
      AND \(isOver)
      FOR UPDATE SKIP LOCKED
      """)
    let ids: [ID] = try rows.map { try $0["id"] }
    if !ids.isEmpty { change.erase(SpentID.deletingEvents(where: "e.id = ANY(\(ids))")) }
    return ids.count
  }
}

extension Event {
  /// Takes the event whose reminder has been due for the longest time. If it is still to come, reminds its hosts and
  /// the guests who are going. Skips events that another transaction has locked.
  ///
  /// - Returns: false if there is no event to take.
  static func remindOfNext(in change: Change) async throws -> Bool {
    let row = try await change.first(
      """
      SELECT id, title, start_time, visitor_count,
        \(Phase.isOpen("events")) AND start_time > clock_timestamp() AS is_to_come
      FROM events
      WHERE remind_at <= now()
      ORDER BY remind_at, id
      LIMIT 1
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    guard let row else { return false }
    let id: ID = try row["id"]
    try change.write("UPDATE events SET remind_at = NULL WHERE id = \(id)")
    if try row["is_to_come"] {
      change.notify(
        usersIn: """
          SELECT user_id FROM invitations WHERE event_id = \(id) AND status = 'going'
          UNION ALL
          \(hosts(of: id))
          """,
        about: .eventReminder(id, try row["title"], start: try row["start_time"]))
      if try row["visitor_count"] > 0 { change.mail(.visitors(.reminder, at: id)) }
    }
    return true
  }
}

extension Event {
  /// Keeps the local times of events after a new version of the time zone database. If a government has changed a
  /// zone's rules, an event at 7 PM stays at 7 PM, and its times move. Done in batches, like archiving.
  ///
  /// An event moves only while it is live, not cancelled, and has not begun, by the old rules or by the new ones. Where
  /// only the old ones say that it has begun, its hour is still to come; where only the new ones do, everyone must see
  /// that it has. Its row keeps the newest version by which it was looked at, and no older version moves it back:
  /// processes with different versions may share a database.
  ///
  /// - Returns: the number of events that it has looked at.
  static func keepLocalTimes(by zones: ZoneDatabase, atMost limit: Int, in change: Change) async throws -> Int {
    let rows = try await change.rows(
      """
      SELECT id, \(Plan.record("events")) AS plan, \(Offsets.record) AS offsets, remind_at, status
      FROM events
      WHERE id IN (
        SELECT id
        FROM (
          SELECT id, sum(guests) OVER (ORDER BY id) - guests AS before
          FROM (
            SELECT id, \(total) AS guests
            FROM events
            WHERE archived_at IS NULL AND zone_rules < \(zones.version) AND time_zone = ANY(\(zones.names))
              AND \(zones.version) >= (SELECT max(zone_rules) FROM events WHERE archived_at IS NULL)
            LIMIT \(limit)
          ) AS older
        ) AS counted
        -- One statement writes the stamps of all guests and must end in time.
        WHERE before < 10000
      )
      -- Checked again on the locked row: another worker may have been here.
      AND archived_at IS NULL AND zone_rules < \(zones.version)
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    guard !rows.isEmpty else { return 0 }
    let now = Timestamp.now()
    let moves = try rows.compactMap { try Move(row: $0, by: zones, now: now) }
    let ids: [ID] = try rows.map { try $0["id"] }
    let moved = moves.map(\.id)
    try change.write(
      "UPDATE events SET zone_rules = \(zones.version) WHERE id = ANY(\(ids)) AND id <> ALL(\(moved))")
    guard !moved.isEmpty else { return ids.count }
    for move in moves { try change.write(move.statement(now: now)) }
    change.touch(.events, ofUsersIn: hosts(of: moved))
    change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(moved))")
    change.notify(usersIn: participants(in: moved), aboutEach: moves.map(\.notice))
    return ids.count
  }

  /// An event whose times move.
  private struct Move {
    let id: ID
    let old: Plan
    private let new: Plan
    private let offsets: Offsets
    private let remindAt: Timestamp?

    /// Nil if the times stay.
    init?(row: Row, by zones: ZoneDatabase, now: Timestamp) throws {
      (id, old) = (try row["id"], try row["plan"])
      let oldOffsets: Offsets = try row["offsets"]
      guard try row["status"] == Status.scheduled, let zone = zones[old.timeZone] else { return nil }
      remindAt = try row["remind_at"]
      (new, offsets) = oldOffsets.kept(old, in: zone, rules: zones.version)
      if new == old || max(old.startTime, new.startTime) <= now { return nil }
    }

    func statement(now: Timestamp) -> SQL {
      // A reminder that has not been sent yet stays due, even if the start has come closer than an hour.
      let reminder =
        new.startTime == old.startTime ? remindAt : new.remindAt(now: now) ?? (remindAt == nil ? nil : now)
      return """
        UPDATE events
        SET start_time = \(new.startTime), end_time = \(new.endTime), answer_by = \(new.answerBy),
          \(offsets.assignments), live_until = \(new.liveUntil),
          remind_at = \(reminder), version = version + 1, updated_at = clock_timestamp()
        WHERE id = \(id)
        """
    }

    var notice: Notice { .eventKeptLocalTime(id, new.title, new.differences(from: old)) }
  }
}
