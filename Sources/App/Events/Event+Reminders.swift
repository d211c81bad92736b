import Postgres

extension Event {
  /// Takes the event whose reminder has been due for the longest time. If it is still to come, reminds its hosts and
  /// the guests who are going. Skips events that another transaction has locked.
  ///
  /// - Returns: false if there is no event to take.
  static func remindOfNext(in change: Change) async throws -> Bool {
    let row = try await change.first(
      """
      SELECT id, title, start_time, visitor_count,
        status = 'scheduled' AND archived_at IS NULL AND start_time > clock_timestamp() AS is_to_come
      FROM events
      WHERE remind_at <= now()
      ORDER BY remind_at, id
      LIMIT 1
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    guard let row else { return false }
    let id: ID = try row["id"]
    try change.write("UPDATE events SET remind_at = NULL WHERE id = \(id)")
    if try row["is_to_come"] {
      change.notify(
        usersIn: """
          SELECT user_id FROM invitations WHERE event_id = \(id) AND status = 'going'
          UNION ALL
          \(hosts(of: id))
          """,
        about: .eventReminder(id, try row["title"], start: try row["start_time"]))
      if try row["visitor_count"] > 0 { change.mail(.visitors(.reminder, at: id)) }
    }
    return true
  }
}
