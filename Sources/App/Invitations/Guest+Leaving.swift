import Postgres

/// The end of being a guest.
extension Guest {
  /// Withdraws an invitation to an open event on behalf of a host, or removes a visitor. A place that becomes free goes
  /// to the guest who has waited longest. An invitee loses all earlier notifications about the event and an offer to
  /// host it, and is notified, unless they have declined. Repeating the call changes nothing.
  static func withdraw(_ guest: ID, from event: Event.ID, by host: User.ID, in change: Change) async throws {
    let row = try await Event.lock(event, by: host, in: change)
    let found = try await change.first(
      // To the host, a hidden guest does not exist.
      """
      SELECT user_id, status,
        user_id IN (SELECT o.user_id FROM host_offers AS o WHERE o.event_id = \(event)) AS is_offered
      FROM event_guests
      WHERE event_id = \(event) AND id = \(guest) AND \(isShown(to: host))
      """)
    guard let found else { return }
    try Event.Phase(row: row).checkIsOpen()
    guard let user: User.ID = try found["user_id"] else {
      return try await leave(visitors: "v.id = \(guest)", by: .user(host), in: change)
    }
    // By accepting a proposed answer, the guest would come back.
    let proposed: SQL = "v.event_id = \(event) AND \(Visitor.isProposed(to: "\(user)"))"
    try await leave(
      invitees: "i.event_id = \(event) AND i.user_id = \(user)",
      visitors: try row["visitor_count"] > 0 ? proposed : nil, by: .user(host), in: change)
    if try found["is_offered"] {
      try change.write("DELETE FROM host_offers WHERE event_id = \(event) AND user_id = \(user)")
    }
    try Invitation.forgetNotices(of: user, about: event, in: change)
    let status: Invitation.Status = try found["status"]
    if status != .declined { change.notify(user, about: .invitationWithdrawn(event, try row["title"])) }
  }

  /// Removes guests from guest lists and updates the counts. Places that become free go to the guests who have waited
  /// longest, once all have left, and only these are notified. Everything that has a visitor's name is deleted. The
  /// caller holds the locks on the events.
  ///
  /// - Parameters:
  ///   - invitees: a condition on `invitations AS i`; nil for none.
  ///   - visitors: a condition on `visitors AS v`; nil for none.
  ///   - cause: whose change this is.
  static func leave(
    invitees: SQL? = nil, visitors: SQL? = nil, by cause: Cause, in change: Change
  ) async throws {
    if let visitors { try change.write(Visitor.freeingLinks(of: visitors)) }
    let left = try await change.rows(
      """
      WITH \(gone(invitees, visitors)), sums AS (
        SELECT event_id, array_agg(user_id) FILTER (WHERE user_id IS NOT NULL) AS user_ids,
          array_agg(id) FILTER (WHERE user_id IS NULL) AS visitor_ids, sum(plus_ones) AS plus_ones,
          bool_or(status IN ('going', 'waitlisted')) AS held_or_waited,
          \(Invitation.Status.sums)
        FROM gone
        GROUP BY event_id
      )
      UPDATE events AS e
      SET \(Invitation.Status.subtraction), plus_ones_count = e.plus_ones_count - sums.plus_ones,
        visitor_count = e.visitor_count - coalesce(cardinality(sums.visitor_ids), 0)
      FROM sums
      WHERE e.id = sums.event_id
      RETURNING e.id, coalesce(sums.user_ids, '{}') AS user_ids, coalesce(sums.visitor_ids, '{}') AS visitor_ids,
        e.archived_at IS NULL AS is_live,
        -- A party that waited may have been the one that did not fit.
        sums.held_or_waited AND \(Event.Phase.isOpen("e")) AND e.waitlisted_count > 0
          AS frees_place
      """)
    let live = try left.filter { try $0["is_live"] }
    for row in live {
      let users: [User.ID] = try row["user_ids"]
      for user in users { change.touch(.events, .invitations, of: user) }
    }
    // With one guest fewer, lists may show the counts again.
    if !live.isEmpty { Invitation.touchWhoSeesCounts(of: try live.map { try $0["id"] }, in: change) }
    let freed: [Event.ID] = try left.filter { try $0["frees_place"] }.map { try $0["id"] }
    if !freed.isEmpty { try await promoteWaiting(at: freed, by: cause, in: change) }
    let visits = try left.map { row -> (event: Event.ID, ids: [ID]) in (try row["id"], try row["visitor_ids"]) }
    for visit in visits.sorted(by: { $0.event < $1.event }) where !visit.ids.isEmpty {
      try Visitor.forgetNotices(about: visit.ids, at: visit.event, in: change)
    }
  }

  /// The first part of a statement, which deletes guests. Its relation `gone` has their `event_id`, `id`, `user_id`,
  /// which is NULL for a visitor, `status` and `plus_ones`.
  private static func gone(_ invitees: SQL?, _ visitors: SQL?) -> SQL {
    let invited: SQL = """
      DELETE FROM invitations AS i WHERE \(invitees ?? "false")
      RETURNING i.event_id, i.user_id AS id, i.user_id, i.status, i.plus_ones
      """
    let visiting: SQL = """
      DELETE FROM visitors AS v WHERE \(visitors ?? "false")
      RETURNING v.event_id, v.id, NULL::uuid AS user_id, v.status, v.plus_ones
      """
    if visitors == nil { return "gone AS (\(invited))" }
    if invitees == nil { return "gone AS (\(visiting))" }
    return """
      invited AS (\(invited)), visiting AS (\(visiting)), gone AS (
        SELECT * FROM invited UNION ALL SELECT * FROM visiting
      )
      """
  }
}

extension Invitation.Status {
  /// The places in each state, of a relation with `status` and `plus_ones`.
  static var sums: SQL {
    allCases.map { status -> SQL in
      "coalesce(sum(1 + plus_ones) FILTER (WHERE status = \(status)), 0) AS \(status.count)"
    }.joined(separator: ",\n")
  }

  fileprivate static var subtraction: SQL {
    allCases.map { status -> SQL in "\(status.count) = e.\(status.count) - sums.\(status.count)" }
      .joined(separator: ", ")
  }
}

extension Invitation {
  /// Deletes all notifications about an event that a user can no longer see: in the queue, in deliveries, and in the
  /// inbox. The caller has locked the event.
  ///
  /// - Parameter kind: the only type to delete; nil for all.
  static func forgetNotices(
    of user: User.ID, about event: Event.ID, ofType kind: Notice.Kind? = nil, in change: Change
  ) throws {
    let isOfType: SQL = kind.map { "type = \($0)" } ?? "true"
    let mine: SQL = "recipient_id = \(user) AND subject_id = \(event) AND \(isOfType)"
    // In this order: fan-out writes inbox items and deliveries, and the removal from the queue waits for it.
    try change.write(
      NotificationQueue.remove(
        """
        SELECT id, \(user) AS recipient_id FROM notification_queue
        WHERE subject_id = \(event) AND \(user) = ANY(recipient_ids) AND \(isOfType)
        """))
    // A delivery that is being sent stays, so that the next one waits for it.
    try change.write(Delivery.delete(where: "\(mine) AND lease IS NULL"))
    change.touch(.notifications, ofUsersIn: "SELECT recipient_id FROM notifications WHERE \(mine)")
    change.erase("DELETE FROM notifications WHERE \(mine)")
  }
}
