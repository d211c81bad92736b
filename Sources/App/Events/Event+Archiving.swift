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
    let proposed = try visits.filter { try $0["is_proposed"] }.map { row -> Visitor.ID in try row["id"] }
    if !proposed.isEmpty {
      try await Visitor.remove(where: "v.id = ANY(\(proposed))", by: .visitor, promotes: false, in: change)
    }
    try await Proposal.forgetNotices(about: ids, in: change)
    change.touch(.events, ofUsersIn: hosts(of: ids))
    change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(ids))")
    return ids.count
  }
}
