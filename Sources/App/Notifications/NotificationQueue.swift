import Foundation
import Postgres

/// The table of notices that wait to be fanned out, one row each. A change inserts them in its own transaction.
enum NotificationQueue {
  /// The channel on which a process announces that it has added to a queue.
  static let channel = "muster_queue"

  /// A notice whose recipients are known.
  struct Addressed: Sendable {
    let recipients: [User.ID]
    let notice: Notice
  }

  /// Inserts a row for each notice, in their order. The actor is never a recipient.
  ///
  /// - Returns: nil if there are no recipients.
  static func insert(_ notices: [Addressed]) -> SQL? {
    let notices = notices.map { each in
      let notice = each.notice.stored
      return (recipients: each.recipients.filter { $0 != notice.actor }, notice: notice)
    }.filter { !$0.recipients.isEmpty }
    guard let first = notices.first else { return nil }
    if notices.count == 1 {
      return """
        INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
        VALUES (
          \(first.notice.kind), \(first.notice.subject), \(first.notice.person), \(first.recipients),
          \(first.notice.payload)
        )
        """
    }
    let pairs = notices.enumerated().flatMap { place, each in each.recipients.map { (Int64(place) + 1, $0) } }
    return """
      INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
      SELECT n.type, n.subject_id, nullif(n.person_id, \(UUID.zero)), r.ids, n.payload::jsonb
      FROM unnest(
        \(notices.map(\.notice.kind)), \(notices.map(\.notice.subject)),
        \(notices.map { $0.notice.person?.rawValue ?? .zero }), \(notices.map(\.notice.payload.text))
      ) WITH ORDINALITY AS n (type, subject_id, person_id, payload, place)
      JOIN (
        SELECT place, array_agg(user_id) AS ids
        FROM unnest(\(pairs.map(\.0)), \(pairs.map(\.1))) AS pair (place, user_id)
        GROUP BY place
      ) AS r ON r.place = n.place
      ORDER BY n.place
      """
  }

  /// Inserts a row for a notice, unless it has no recipients. The actor is never a recipient.
  ///
  /// - Parameter recipients: a query with one column of user ids.
  static func insert(_ notice: Notice, forUsersIn recipients: SQL) -> SQL {
    let notice = notice.stored
    return """
      INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
      SELECT \(notice.kind), \(notice.subject), \(notice.person), recipients.ids, \(notice.payload)
      FROM (
        SELECT array_agg(DISTINCT user_id) AS ids
        FROM (\(recipients)) AS each (user_id)
        WHERE user_id IS NOT NULL AND user_id IS DISTINCT FROM \(notice.actor)
      ) AS recipients
      WHERE recipients.ids IS NOT NULL
      """
  }

  /// Inserts a row for each notice that has recipients, in their order. The actor is never a recipient.
  ///
  /// - Parameter pairs: a query of `(subject_id, user_id)`, the recipients of the notice about each subject.
  static func insert(_ notices: [Notice], by actor: User.ID?, forUsersIn pairs: SQL) -> SQL {
    let notices = notices.map(\.stored)
    return """
      INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
      SELECT n.type, n.subject_id, r.ids, n.payload::jsonb
      FROM unnest(
        \(notices.map(\.kind)), \(notices.map(\.subject)), \(notices.map(\.payload.text))
      ) WITH ORDINALITY AS n (type, subject_id, payload, place)
      JOIN (
        SELECT subject_id, array_agg(DISTINCT user_id) AS ids
        FROM (\(pairs)) AS each (subject_id, user_id)
        WHERE user_id IS DISTINCT FROM \(actor)
        GROUP BY subject_id
      ) AS r ON r.subject_id = n.subject_id
      ORDER BY n.place
      """
  }

  /// Removes a recipient from waiting notices, and deletes those without other recipients. Other recipients still get
  /// theirs.
  ///
  /// - Parameter pairs: a query of `(id, recipient_id)` of notices, each once.
  static func remove(_ pairs: SQL) -> SQL {
    // Locked in id order, like in fan-out. The recipients come from the locking query, because those in the statement's
    // snapshot may have been served meanwhile.
    """
    WITH waiting AS MATERIALIZED (
      SELECT q.id, pair.recipient_id, q.recipient_ids
      FROM (\(pairs)) AS pair
      JOIN notification_queue AS q ON q.id = pair.id
      WHERE pair.recipient_id = ANY(q.recipient_ids)
      ORDER BY q.id
      FOR UPDATE OF q
    ),
    emptied AS (
      DELETE FROM notification_queue AS q
      USING waiting
      WHERE q.id = waiting.id AND waiting.recipient_ids <@ ARRAY[waiting.recipient_id]
    )
    UPDATE notification_queue AS q
    SET recipient_ids = array_remove(waiting.recipient_ids, waiting.recipient_id)
    FROM waiting
    WHERE q.id = waiting.id AND NOT waiting.recipient_ids <@ ARRAY[waiting.recipient_id]
    """
  }

  /// Deletes waiting notices.
  ///
  /// - Parameter condition: on the columns of `notification_queue`.
  static func delete(where condition: SQL) -> SQL {
    """
    DELETE FROM notification_queue
    WHERE id IN (SELECT id FROM notification_queue WHERE \(condition) ORDER BY id FOR UPDATE)
    """
  }

  /// Changes waiting notices.
  ///
  /// - Parameters:
  ///   - assignments: of columns of `notification_queue`.
  ///   - condition: on these columns.
  static func edit(_ assignments: SQL, where condition: SQL) -> SQL {
    """
    UPDATE notification_queue SET \(assignments)
    WHERE id IN (SELECT id FROM notification_queue WHERE \(condition) ORDER BY id FOR UPDATE)
    """
  }
}
