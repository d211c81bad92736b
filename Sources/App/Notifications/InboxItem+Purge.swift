import Foundation
import Postgres

/// The end of items that are over. They stand in partitions of 30 days, and a DROP moves no stamps. So the inboxes'
/// floors rise first, which hides the items and moves the stamps. What no inbox shows is then dropped or deleted.
///
/// A process may be killed between any two steps, and several may run at once: each step is a transaction that finds for
/// itself what is left to do.
extension InboxItem {
  /// The time before which items are over, the same for all inboxes for 30 days. So a stamp moves once in this time, and
  /// not with each item.
  static let over: SQL = "notifications_over()"

  /// Makes the partitions of these 30 days and the next ones, if there are none.
  ///
  /// - Returns: the number of new partitions.
  static func makePartitions(in database: Database) async throws -> Int {
    try await database.batch("SELECT make_notification_partitions()")[0][0][0] as Int
  }

  /// Does one step: raises some floors, or drops a partition, or deletes some items that are in no partition.
  ///
  /// - Returns: the number of inboxes, partitions or items.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    let raised = try await database.change { try await raiseFloors(to: over, atMost: limit, in: $0) }
    if raised > 0 { return raised }
    let dropped: Int = try await database.batch("SELECT drop_notification_partition()")[0][0][0]
    return dropped > 0 ? dropped : try await deleteHidden(atMost: limit, in: database)
  }

  /// Raises the floors of inboxes, those that are lowest first, and moves the stamps of those that lose items by it.
  ///
  /// All users have floors, also those with empty inboxes, because items are filed above the floor. Once all floors are
  /// above the end of a partition, no item that a user sees is filed in it, even if the clock is set back.
  ///
  /// - Parameter floor: an expression that is the same throughout a transaction.
  /// - Returns: the number of inboxes.
  static func raiseFloors(to floor: SQL, atMost limit: Int, in change: Change) async throws -> Int {
    let users: [User.ID] = try await change.rows(
      """
      SELECT user_id FROM user_stamps WHERE inbox_floor < \(floor) ORDER BY inbox_floor LIMIT \(limit)
      """
    ).map { try $0["user_id"] }
    guard !users.isEmpty else { return 0 }
    // The locks are a statement of their own, so that the next one sees all that was filed below the new floor.
    try change.write("SELECT FROM user_stamps WHERE user_id = ANY(\(users)) ORDER BY user_id FOR NO KEY UPDATE")
    try change.write(
      """
      UPDATE user_stamps AS s
      SET inbox_floor = \(floor), notifications = CASE
        WHEN EXISTS (
          SELECT FROM notifications AS n
          WHERE n.recipient_id = s.user_id AND n.filed_at >= s.inbox_floor AND n.filed_at < \(floor)
        ) THEN \(Stamps.next("notifications"))
        ELSE s.notifications
      END
      WHERE s.user_id = ANY(\(users)) AND s.inbox_floor < \(floor)
      """)
    return users.count
  }

  /// Deletes items below the floors of their inboxes that stand in no partition of 30 days, because the clock had jumped
  /// or no worker had made one.
  ///
  /// - Returns: the number of deleted items.
  private static func deleteHidden(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.batch(
      """
      DELETE FROM notifications_default
      WHERE (recipient_id, filed_at) IN (
        SELECT n.recipient_id, n.filed_at FROM notifications_default AS n
        WHERE n.filed_at < \(over) AND NOT EXISTS (
          SELECT FROM user_stamps AS s WHERE s.user_id = n.recipient_id AND s.inbox_floor <= n.filed_at
        )
        LIMIT \(limit)
        FOR UPDATE SKIP LOCKED
      )
      """)[0].affected
  }
}
