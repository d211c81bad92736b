import Postgres

/// The end of a visitor's data.
extension Visitor {
  /// Removes visitors. See ``Guest/leave(_:by:promotes:in:)``. The caller holds the locks on the events.
  ///
  /// - Parameter condition: on `visitors AS v`.
  static func leave(
    where condition: SQL, by cause: Invitation.Cause, promotes: Bool = true, in change: Change
  ) async throws {
    try await Guest.leave(
      """
      DELETE FROM visitors AS v WHERE \(condition)
      RETURNING v.event_id, NULL::uuid AS user_id, v.status, v.plus_ones
      """, by: cause, promotes: promotes, in: change)
  }

  /// Removes visitors together with everything that has their names: mails, notices, and inbox items of hosts. The caller
  /// holds the locks on the events.
  ///
  /// - Parameter condition: on `visitors AS v`.
  /// - Returns: the open events that have lost a visitor.
  @discardableResult
  static func remove(
    where condition: SQL, by cause: Invitation.Cause, promotes: Bool = true, in change: Change
  ) async throws -> [Event.ID] {
    let rows = try await change.rows(
      """
      SELECT v.id, v.event_id, \(Event.Phase.isOpen("e")) AS is_open
      FROM visitors AS v JOIN events AS e ON e.id = v.event_id
      WHERE \(condition)
      ORDER BY v.id
      """)
    guard !rows.isEmpty else { return [] }
    let ids: [Guest.ID] = try rows.map { try $0["id"] }
    try await leave(where: "v.id = ANY(\(ids))", by: cause, promotes: promotes, in: change)
    let parties = try Dictionary(grouping: rows) { row -> Event.ID in try row["event_id"] }
    for (event, visits) in parties.sorted(by: { $0.key < $1.key }) {
      try forgetNotices(about: try visits.map { try $0["id"] }, at: event, in: change)
    }
    return try parties.filter { try $0.value[0]["is_open"] }.map(\.key)
  }

  /// Erases the visitors who would be merged into an account that is about to be deleted. The caller has locked their
  /// events.
  ///
  /// - Parameter leave: ends the account's own invitations. No place goes to any of them.
  static func eraseAll(mergingInto user: User.ID, in change: Change, andThen leave: () async throws -> Void)
    async throws
  {
    let visits = try await change.rows("\(merging(into: user)) ORDER BY v.id")
    let ids: [Guest.ID] = try visits.map { try $0["id"] }
    if !ids.isEmpty { try await self.leave(where: "v.id = ANY(\(ids))", by: .user(user), promotes: false, in: change) }
    try await leave()
    guard !ids.isEmpty else { return }
    let open: [Event.ID] = try await change.rows(
      """
      SELECT id FROM events
      WHERE id = ANY(\(try visits.map { try $0["event_id"] as Event.ID }))
        AND \(Event.Phase.isOpen("events"))
      """
    ).map { try $0["id"] }
    try await Invitation.promoteWaiting(at: open, by: .user(user), in: change)
    let parties = try Dictionary(grouping: visits) { row -> Event.ID in try row["event_id"] }
    for (event, visits) in parties.sorted(by: { $0.key < $1.key }) {
      try forgetNotices(about: try visits.map { try $0["id"] }, at: event, in: change)
    }
  }

  /// Erases a visitor's data at their request: the row, and the notices that have their name.
  static func erase(_ id: Guest.ID, at event: Event.ID, in change: Change) async throws {
    _ = try await lock(event, in: change)
    try change.write(freeingLinks(of: "v.id = \(id) AND v.event_id = \(event)"))
    try await leave(where: "v.id = \(id) AND v.event_id = \(event)", by: .visitor, in: change)
    try forgetNotices(about: [id], at: event, in: change)
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
    let lapsed: SQL = "v.event_id = ANY(\(events)) AND v.lapses_at <= now()"
    try change.write(freeingLinks(of: lapsed))
    try await remove(where: lapsed, by: .visitor, in: change)
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
    """
    DELETE FROM events AS e
    WHERE e.id = ANY(\(events)) AND e.creator_id IS NULL
      AND NOT EXISTS (SELECT FROM event_hosts AS h WHERE h.event_id = e.id)
      AND NOT EXISTS (SELECT FROM event_guests AS g WHERE g.event_id = e.id)
    """
  }
}
