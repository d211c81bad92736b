import Postgres

extension Event {
  /// Moves events that ended a day ago from the live lists to the archive: a write like any other, so that no list
  /// changes by the clock alone. No more at once than some 10,000 guests see: their stamps are one statement, which must
  /// end in time.
  ///
  /// - Returns: how many.
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
      -- Asked again of the row as it is once locked: it may just have been put off.
      AND live_until <= \(now)
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    let ids: [ID] = try rows.map { try $0["id"] }
    guard !ids.isEmpty else { return 0 }
    try await change.rows("UPDATE events SET archived_at = \(now) WHERE id = ANY(\(ids))")
    change.touch(.events, ofUsersIn: "SELECT creator_id FROM events WHERE id = ANY(\(ids))")
    change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(ids))")
    return ids.count
  }
}
