import Postgres

/// The end of a visitor's data.
extension Visitor {
  /// Erases a visitor's data at their request: the row, and the notices that have their name.
  static func erase(_ id: Guest.ID, at event: Event.ID, in change: Change) async throws {
    _ = try await lock(event, in: change)
    try await Guest.leave(visitors: "v.id = \(id) AND v.event_id = \(event)", by: .visitor, in: change)
    try Report.forget(id, in: change)
    try change.write(deletingAbandoned([event]))
  }

  /// Deletes whatever has the names of visitors who are gone: notices in the queue, in deliveries and in inboxes, stored
  /// responses, and mails. A notice about many visitors stays, without these names. The caller has locked the event.
  static func forgetNotices(about ids: [Guest.ID], at event: Event.ID, in change: Change) throws {
    let texts = ids.map(\.description)
    let named: SQL = "guest_id = ANY(\(ids))"
    let naming: SQL = """
      subject_id = \(event) AND payload ? 'guests' AND EXISTS (
        SELECT FROM jsonb_array_elements(payload->'guests') AS guest WHERE guest->>'guestId' = ANY(\(texts))
      )
      """
    let unnamed: SQL = """
      payload = jsonb_set(payload, '{guests}', (
        SELECT coalesce(jsonb_agg(guest), '[]') FROM jsonb_array_elements(payload->'guests') AS guest
        WHERE guest->>'guestId' <> ALL(\(texts))
      ))
      """
    // In this order: fan-out writes inbox items and deliveries, and the removal from the queue waits for it.
    try change.write(NotificationQueue.delete(where: named))
    try change.write(NotificationQueue.edit(unnamed, where: naming))
    // One that is being sent is dropped before its next attempt.
    try change.write(Delivery.delete(where: "\(named) AND lease IS NULL"))
    // Also while one is being sent: its next attempt reads the row again.
    try change.write(Delivery.edit(unnamed, where: naming))
    try change.write("DELETE FROM mails WHERE visitor_id = ANY(\(ids)) AND lease IS NULL")
    try change.write(IdempotentRequest.forgettingResponses(showing: ids, at: event))
    change.touch(
      .notifications,
      ofUsersIn: """
        SELECT recipient_id FROM notifications WHERE \(named)
        UNION
        SELECT recipient_id FROM notifications WHERE \(naming)
        """)
    change.erase("DELETE FROM notifications WHERE \(named)")
    change.erase("UPDATE notifications SET \(unnamed) WHERE \(naming)")
  }

  /// Deletes some visitors whose time is over: those who have not confirmed their address within a day, and those of
  /// events that ended 90 days ago. Their places become free. Hosts are not notified, because the answer was never
  /// confirmed. Skips events that another change has locked.
  ///
  /// - Returns: the number of events that had such visitors.
  static func endLapsed(atMost limit: Int, in change: Change) async throws -> Int {
    let events: [Event.ID] = try await change.rows(
      """
      SELECT id FROM events
      WHERE id IN (
        SELECT event_id FROM visitors WHERE lapses_at <= clock_timestamp() ORDER BY lapses_at LIMIT \(limit)
      )
      ORDER BY id
      FOR NO KEY UPDATE SKIP LOCKED
      """
    ).map { try $0["id"] }
    guard !events.isEmpty else { return 0 }
    // In this transaction, now() is one time.
    try await Guest.leave(
      visitors: "v.event_id = ANY(\(events)) AND v.lapses_at <= now()", by: .visitor, in: change)
    try change.write(deletingAbandoned(events))
    return events.count
  }

  /// Answers that were never confirmed use up no link.
  ///
  /// - Parameter condition: on `visitors AS v` who are about to be deleted.
  static func freeingLinks(of condition: SQL) -> SQL {
    """
    UPDATE share_links AS l SET joined_count = greatest(l.joined_count - gone.count, 0)
    FROM (
      SELECT v.link_id, count(*) AS count FROM visitors AS v
      WHERE \(condition) AND v.confirmed_at IS NULL AND v.email IS NOT NULL AND v.lapses_at IS NOT NULL
      GROUP BY v.link_id
    ) AS gone
    WHERE l.id = gone.link_id
    """
  }

  /// Deletes events without any host or guest.
  private static func deletingAbandoned(_ events: [Event.ID]) -> SQL {
    SpentID.deletingEvents(
      where: """
        e.id = ANY(\(events)) AND e.creator_id IS NULL
          AND NOT EXISTS (SELECT FROM event_hosts AS h WHERE h.event_id = e.id)
          AND NOT EXISTS (SELECT FROM event_guests AS g WHERE g.event_id = e.id)
        """)
  }
}
