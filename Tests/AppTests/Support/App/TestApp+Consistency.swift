import Postgres
import Testing

@testable import App

/// Rules that the database keeps after any changes.
extension TestApp {
  /// Expects that every event's counts are right, and that the first group that waits does not fit, unless the event is
  /// over.
  func expectCounts(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let wrong: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE (invited_count, going_count, maybe_count, declined_count, waitlisted_count, pending_count, plus_ones_count) <> (
        SELECT coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'invited'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'going'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'maybe'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'declined'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'waitlisted'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'pending'), 0), coalesce(sum(plus_ones), 0)
        FROM event_guests WHERE event_id = e.id
      )
      """)
    #expect(wrong == 0, "counts", sourceLocation: sourceLocation)
    let miscounted: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE visitor_count <> (SELECT count(*) FROM visitors WHERE event_id = e.id)
      """)
    #expect(miscounted == 0, "visitors", sourceLocation: sourceLocation)
    let hidden: Int? = try await value(
      "SELECT count(*) FROM event_co_hosts AS h JOIN events AS e ON e.id = h.event_id WHERE NOT e.may_have_co_hosts")
    #expect(hidden == 0, "co-hosts", sourceLocation: sourceLocation)
    let unfair: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE status = 'scheduled' AND live_until > now() + interval '24 hours' AND (
        -- A group that is larger than the whole event is skipped.
        SELECT capacity IS NULL OR going_count + 1 + plus_ones <= capacity
        FROM event_guests
        WHERE event_id = e.id AND status = 'waitlisted' AND (capacity IS NULL OR plus_ones < capacity)
        ORDER BY answered_at, id
        LIMIT 1
      )
      """)
    #expect(unfair == 0, "free places", sourceLocation: sourceLocation)
  }

  /// Expects consistent data. Counts are right, and no event has more guests than places, which does not hold after a
  /// capacity was lowered. The queue names no deleted user. After fan-out, no inbox and no delivery belongs to a
  /// deleted user or names one.
  ///
  /// - Parameter lowersCapacities: whether hosts have done so.
  func expectConsistency(
    lowersCapacities: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await expectCounts(sourceLocation: sourceLocation)
    let crowded: Int? = try await value("SELECT count(*) FROM events WHERE going_count > capacity")
    #expect(crowded == 0 || lowersCapacities, "places", sourceLocation: sourceLocation)
    let orphans: Int? = try await value(
      """
      SELECT count(*) FROM notification_queue AS q
      WHERE person_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users WHERE id = q.person_id)
        OR EXISTS (SELECT 1 FROM unnest(q.recipient_ids) AS recipient (id) JOIN users ON users.id = recipient.id)
          AND payload ? 'userId' AND NOT EXISTS (SELECT 1 FROM users WHERE id = (payload->>'userId')::uuid)
      """)
    #expect(orphans == 0, "queue", sourceLocation: sourceLocation)
    try await fanOut()
    for table in ["notifications", "deliveries"] {
      let unowned: Int? = try await value(
        """
        SELECT count(*) FROM \(unescaped: table) AS n
        WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = n.recipient_id)
          OR n.person_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users WHERE id = n.person_id)
          OR payload ? 'userId' AND NOT EXISTS (SELECT 1 FROM users WHERE id = (payload->>'userId')::uuid)
        """)
      #expect(unowned == 0, "\(table)", sourceLocation: sourceLocation)
    }
    let hosted: Int? = try await value(
      """
      SELECT count(*) FROM events
      WHERE creator_id IS NULL AND status = 'scheduled' AND live_until > now() + interval '24 hours'
      """)
    #expect(hosted == 0, "future events without a host", sourceLocation: sourceLocation)
  }

  /// Expects that no block is crossed. Between two users with a block there is no friendship, no pending request, no
  /// invitation to a future event, no queued notice, and no delivery.
  func expectNothingCrossesABlock(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let rows = try await database.rows(
      """
      SELECT 'friendship' FROM friendships AS f JOIN hidden AS h ON h.user_id = f.user_a AND h.hidden_id = f.user_b
      UNION ALL
      SELECT 'request' FROM friend_requests AS r
      JOIN hidden AS h ON h.user_id = r.sender_id AND h.hidden_id = r.receiver_id
      WHERE r.status = 'pending'
      UNION ALL
      SELECT 'invitation' FROM invitations AS i
      JOIN events AS e ON e.id = i.event_id
      JOIN event_hosts AS host ON host.event_id = e.id
      JOIN hidden AS h ON h.user_id = i.user_id AND h.hidden_id = host.user_id
      WHERE e.archived_at IS NULL
      UNION ALL
      SELECT 'co-host' FROM event_co_hosts AS c
      JOIN events AS e ON e.id = c.event_id
      JOIN hidden AS h ON h.user_id = c.user_id AND h.hidden_id = e.creator_id
      WHERE e.archived_at IS NULL
      UNION ALL
      SELECT q.type FROM notification_queue AS q
      JOIN hidden AS h ON h.user_id = ANY(q.recipient_ids)
      LEFT JOIN events AS e ON e.id = q.subject_id
      WHERE q.payload->>'userId' = h.hidden_id::text OR e.creator_id = h.hidden_id
      UNION ALL
      SELECT d.type FROM deliveries AS d
      JOIN hidden AS h ON h.user_id = d.recipient_id
      LEFT JOIN events AS e ON e.id = d.subject_id
      WHERE d.payload->>'userId' = h.hidden_id::text OR e.creator_id = h.hidden_id
      """)
    let crossing = try rows.map { try $0[0] as String }
    #expect(crossing == [], sourceLocation: sourceLocation)
  }
}
