import Postgres

extension Notice {
  /// Seconds for which an inbox keeps its items: 90 days.
  static let lifetime = 90 * 86_400

  /// Deletes old items from the inboxes.
  ///
  /// - Returns: the number of deleted items.
  static func purge(olderThan seconds: Int = lifetime, atMost limit: Int, in change: Change) async throws -> Int {
    let old = try await change.rows(
      """
      SELECT recipient_id, filed_at FROM notifications
      WHERE filed_at < now() - make_interval(secs => \(Double(seconds)))
      LIMIT \(limit)
      """)
    guard !old.isEmpty else { return 0 }
    let recipients: [User.ID] = try old.map { try $0["recipient_id"] }
    let times: [Timestamp] = try old.map { try $0["filed_at"] }
    for recipient in Set(recipients) { change.touch(.notifications, of: recipient) }
    // Runs under the locks of the inboxes' stamps, like filing items and marking them as read.
    change.erase(
      """
      DELETE FROM notifications AS n
      USING unnest(\(recipients), \(times)) AS old (recipient_id, filed_at)
      WHERE n.recipient_id = old.recipient_id AND n.filed_at = old.filed_at
      """)
    return old.count
  }
}
