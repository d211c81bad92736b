import Foundation
import Postgres

/// What was given up: refused for good, or not delivered in time. It holds up nothing that comes after it, and waits for
/// an operator to look at it.
public enum DeadLetter {
  private static let batch = 500

  /// Puts dead letters back into the queue, due now and as if never tried, behind what waits there already.
  ///
  /// - Parameters:
  ///   - ids: nil for all that there are now.
  ///   - type: only of this one.
  /// - Returns: how many.
  public static func retry(_ ids: [Int64]? = nil, ofType type: String? = nil, in database: Database) async throws -> Int
  {
    // None of those that are given up while this goes on.
    let newest: Int64? = try await database.value("SELECT id FROM dead_letters ORDER BY id DESC LIMIT 1")
    guard let last = newest else { return 0 }
    var count = 0
    var place: Int64? = .min
    while let after = place {
      let (next, moved) = try await database.change { change in
        try await move(ids, ofType: type, after: after, upTo: last, in: change)
      }
      count += moved
      place = next
    }
    if count > 0 { database.notify(NotificationQueue.channel) }
    return count
  }

  /// - Returns: the last id that was looked at, nil if there was none; and how many were moved.
  private static func move(
    _ ids: [Int64]?, ofType type: String?, after: Int64, upTo last: Int64, in change: Change
  ) async throws -> (place: Int64?, moved: Int) {
    let rows = try await change.rows(
      """
      SELECT id, recipient_id, actor_id FROM dead_letters
      WHERE id > \(after) AND id <= \(last) AND (\(ids) IS NULL OR id = ANY(\(ids)))
        AND (\(type) IS NULL OR type = \(type))
      ORDER BY id
      LIMIT \(batch)
      """)
    guard !rows.isEmpty else { return (nil, 0) }
    // Whoever deletes their account, or blocks somebody, deletes these, too: not while they are on their way from one
    // table to the other, where they would be missed.
    let people = try rows.flatMap { row -> [User.ID?] in [try row["recipient_id"], try row["actor_id"]] }
    try await change.lock(users: Array(Set(people.compactMap { $0 })), for: .share)
    let found: [Int64] = try rows.map { try $0["id"] }
    let moved = try await change.rows(
      """
      WITH gone AS (
        DELETE FROM dead_letters WHERE id = ANY(\(found))
        RETURNING id, notification_id, type, recipient_id, subject_id, device_id, payload
      )
      -- As old as new: it would else be given up again for its age, and providers would not keep it for a phone.
      INSERT INTO notification_queue (notification_id, type, recipient_id, subject_id, device_id, payload)
      SELECT notification_id, type, recipient_id, subject_id, device_id, payload FROM gone ORDER BY id
      """)
    return (found.last, moved.affected)
  }

  /// Deletes those that were given up so many days ago.
  ///
  /// - Returns: how many, at most as many as asked for.
  public static func purge(olderThan days: Int, atMost limit: Int = 1000, in database: Database) async throws -> Int {
    try await database.batch(
      """
      DELETE FROM dead_letters WHERE id IN (
        SELECT id FROM dead_letters
        WHERE died_at <= now() - make_interval(days => \(Int32(days)))
        ORDER BY died_at
        LIMIT \(limit)
        FOR UPDATE SKIP LOCKED
      )
      """)[0].affected
  }
}

extension Device {
  /// Forgets devices whose session has ended, which are told nothing any more.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    let left: SQL = """
      SELECT d.id
      FROM sessions AS s
      JOIN devices AS d ON d.session_id = s.id
      WHERE s.ended_at IS NOT NULL
      LIMIT \(limit)
      """
    return try await database.batch(Device.forgetting(where: "id IN (\(left))"))[0].count
  }
}

extension Notice {
  /// For how many seconds an inbox keeps what it has: 90 days.
  static let lifetime = 90 * 86_400

  /// Takes what is old out of the inboxes.
  ///
  /// - Returns: how many there were.
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
    // Under the inboxes' stamps, as it was filed, and is marked as read.
    change.erase(
      """
      DELETE FROM notifications AS n
      USING unnest(\(recipients), \(times)) AS old (recipient_id, filed_at)
      WHERE n.recipient_id = old.recipient_id AND n.filed_at = old.filed_at
      """)
    return old.count
  }
}
