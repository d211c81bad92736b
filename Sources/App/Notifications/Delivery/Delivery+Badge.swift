import Postgres

/// Badge-only pushes. When a user reads notifications on one device, their other iPhones get the new number.
extension Delivery {
  /// Badge-only pushes that a device gets within an hour. The next one waits, so that reading a long inbox does not
  /// keep the user's other phones awake.
  private static let badgesPerHour = 3

  /// Common table expressions that queue a push for each of a user's iPhones, except those of one session. A push that
  /// waits already is enough, because the number is counted when it is sent.
  ///
  /// - Parameter changes: the name of an expression without rows if the number has not changed.
  static func queueingBadges(of user: User.ID, except session: Session.ID, ifAny changes: SQL) -> SQL {
    // The lock keeps workers from sending a waiting push before this change commits. A push that a worker has may show
    // the number from before it. OFFSET 0 makes the planner look devices up by their user.
    """
    iphones AS MATERIALIZED (
      SELECT d.id
      FROM (SELECT id, session_id, platform FROM devices WHERE user_id = \(user) OFFSET 0) AS d
      JOIN sessions ON sessions.id = d.session_id AND \(Session.isOpen)
      WHERE d.platform = 'ios' AND d.session_id <> \(session) AND EXISTS (SELECT FROM \(changes))
    ),
    waiting AS MATERIALIZED (
      SELECT iphones.id, q.id AS delivery
      FROM iphones
      CROSS JOIN LATERAL (
        SELECT q.id FROM deliveries AS q
        WHERE q.device_id = iphones.id AND q.subject_id = iphones.id AND q.died_at IS NULL AND q.lease IS NULL
        FOR UPDATE OF q SKIP LOCKED
      ) AS q
    ),
    renewed AS (
      UPDATE deliveries AS q SET created_at = now() FROM waiting WHERE q.id = waiting.delivery
    ),
    badges AS (
      INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
      SELECT uuid_v7(), \(user), id, \(Push.badgeOnly), id, '{}', now()
      FROM iphones
      WHERE id NOT IN (SELECT id FROM waiting)
      ORDER BY id
    )
    """
  }

  /// Whether the row `q` is a badge-only push with another one behind it, which will show the number instead.
  static let isReplacedBadge: SQL = """
    q.type = \(Push.badgeOnly) AND EXISTS (
      SELECT FROM deliveries AS newer
      WHERE \(chain.isBehind("newer", "q")) AND newer.died_at IS NULL
    )
    """

  /// The seconds until the row `q` may be sent to the device `d`; NULL unless the device had many badge-only pushes.
  static let badgePause: SQL = """
    CASE WHEN q.type = \(Push.badgeOnly) THEN
      extract(epoch FROM d.badges_sent_at[cardinality(d.badges_sent_at) - \(badgesPerHour - 1)]
        + interval '1 hour' - now())::float8
    END
    """

  /// Records that a badge-only push was sent.
  static func noteBadge(on device: Device.ID, in database: Database) async throws {
    try await database.batch(
      """
      UPDATE devices
      SET badges_sent_at = (badges_sent_at || now())[greatest(cardinality(badges_sent_at) - \(badgesPerHour - 2), 1):]
      WHERE id = \(device)
      """)
  }
}
