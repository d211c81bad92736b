import Postgres

extension Invitation {
  /// Removes guests from guest lists and updates the counts. Each place that becomes free goes to the guest who has
  /// waited longest, and only that guest is notified. The caller holds the locks on the events.
  ///
  /// - Parameters:
  ///   - condition: on `invitations AS i`. It matches at most one guest per event.
  ///   - actor: the user whose change this is. Nil for a block, which hosts must not notice.
  static func leave(where condition: SQL, by actor: User.ID?, in change: Change) async throws {
    let left = try await change.rows(
      """
      WITH gone AS (
        DELETE FROM invitations AS i WHERE \(condition) RETURNING i.event_id, i.user_id, i.status
      )
      UPDATE events AS e
      SET invited_count = e.invited_count - (gone.status = 'invited')::integer,
        going_count = e.going_count - (gone.status = 'going')::integer,
        maybe_count = e.maybe_count - (gone.status = 'maybe')::integer,
        declined_count = e.declined_count - (gone.status = 'declined')::integer,
        waitlisted_count = e.waitlisted_count - (gone.status = 'waitlisted')::integer
      FROM gone
      WHERE e.id = gone.event_id
      RETURNING e.id, gone.user_id, e.archived_at IS NULL AS is_live,
        gone.status = 'going' AND e.status = 'scheduled' AND e.archived_at IS NULL AND e.waitlisted_count > 0
          AS frees_place
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
}
