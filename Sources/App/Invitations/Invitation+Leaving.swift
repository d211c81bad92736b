import Postgres

extension Invitation {
  /// Removes guests from guest lists and updates the counts. Places that become free go to the guests who
  /// have waited longest, and only these are notified. The caller holds the locks on the events.
  ///
  /// - Parameters:
  ///   - condition: on `invitations AS i`. It matches at most one guest per event.
  ///   - actor: the user whose change this is. Nil for a block, which hosts must not notice.
  static func leave(where condition: SQL, by actor: User.ID?, in change: Change) async throws {
    let left = try await change.rows(
      """
      WITH gone AS (
        DELETE FROM invitations AS i WHERE \(condition) RETURNING i.event_id, i.user_id, i.status, 1 + i.plus_ones AS places
      )
      UPDATE events AS e
      SET invited_count = e.invited_count - CASE WHEN gone.status = 'invited' THEN gone.places ELSE 0 END,
        going_count = e.going_count - CASE WHEN gone.status = 'going' THEN gone.places ELSE 0 END,
        maybe_count = e.maybe_count - CASE WHEN gone.status = 'maybe' THEN gone.places ELSE 0 END,
        declined_count = e.declined_count - CASE WHEN gone.status = 'declined' THEN gone.places ELSE 0 END,
        waitlisted_count = e.waitlisted_count - CASE WHEN gone.status = 'waitlisted' THEN gone.places ELSE 0 END,
        plus_ones_count = e.plus_ones_count - gone.places + 1
      FROM gone
      WHERE e.id = gone.event_id
      RETURNING e.id, gone.user_id, e.archived_at IS NULL AS is_live,
        -- A group that waited may have been the one that did not fit.
        gone.status IN ('going', 'waitlisted') AND e.status = 'scheduled' AND e.archived_at IS NULL
          AND e.waitlisted_count > 0 AS frees_place
      """)
    let live = try left.filter { try $0["is_live"] }
    let ids: [Event.ID] = try live.map { try $0["id"] }
    guard !ids.isEmpty else { return }
    for row in live { change.touch(.events, .invitations, of: try row["user_id"]) }
    // With one guest fewer, lists may show the counts again.
    touchWhoSeesCounts(of: ids, in: change)
    let freed: [Event.ID] = try left.filter { try $0["frees_place"] }.map { try $0["id"] }
    if !freed.isEmpty { try await promoteWaiting(at: freed, by: actor, in: change) }
  }
  /// Deletes all notifications about an event that a user can no longer see, wherever they wait or are kept. The caller
  /// has locked the event.
  static func forgetNotices(of user: User.ID, about event: Event.ID, in change: Change) throws {
    let mine: SQL = "recipient_id = \(user) AND subject_id = \(event)"
    // In this order: fan-out writes inbox items and deliveries, and the removal from the queue waits for it.
    try change.write(
      NotificationQueue.remove(
        """
        SELECT id, \(user) AS recipient_id FROM notification_queue
        WHERE subject_id = \(event) AND \(user) = ANY(recipient_ids)
        """))
    // A delivery that is being sent stays, so that the next one waits for it.
    try change.write(Delivery.delete(where: "\(mine) AND lease IS NULL"))
    change.touch(.notifications, ofUsersIn: "SELECT recipient_id FROM notifications WHERE \(mine)")
    change.erase("DELETE FROM notifications WHERE \(mine)")
  }
}
