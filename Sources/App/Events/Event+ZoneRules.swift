import Postgres

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
