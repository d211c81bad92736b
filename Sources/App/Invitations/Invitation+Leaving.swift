import Postgres

extension Invitation {
  /// Takes people off guest lists, the counts with them. Whoever has waited longest for a place that becomes free has it,
  /// and only they are told. The events are locked by the caller.
  ///
  /// - Parameters:
  ///   - condition: on `invitations AS i`, met by one guest of an event at most.
  ///   - actor: the user whose change this is; nil for a block, of which hosts must hear nothing.
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
    // One guest fewer may be what brings the counts back into the lists.
    touchWhoSeesCounts(of: ids, in: change)
    let freed: [Event.ID] = try left.filter { try $0["frees_place"] }.map { try $0["id"] }
    if !freed.isEmpty { try await promoteWaiting(at: freed, by: actor, in: change) }
  }
}
