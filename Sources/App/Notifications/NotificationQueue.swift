import Foundation
import Postgres

/// The table of notices that wait to be fanned out, one row each. A change inserts them in its own transaction.
enum NotificationQueue {
  /// The channel on which a process says that it has put something into the queue or into an inbox.
  static let channel = "muster_queue"

  /// - Parameter recipients: a query with one column of user ids. The actor is left out.
  static func insert(_ notice: Notice, for recipients: SQL) -> SQL {
    """
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

  /// Takes a recipient off waiting notices, and deletes those that were for no one else. Other recipients still get theirs.
  ///
  /// - Parameter pairs: a query of `(id, recipient_id)` of notices, each once.
  static func remove(_ pairs: SQL) -> SQL {
    // Locked in id order, in which fan-out locks them too. The array is read from the row as it is once locked.
    """
    WITH waiting AS MATERIALIZED (
      SELECT q.id, pair.recipient_id
      FROM (\(pairs)) AS pair
      JOIN notification_queue AS q ON q.id = pair.id
      WHERE pair.recipient_id = ANY(q.recipient_ids)
      ORDER BY q.id
      FOR UPDATE OF q
    ),
    emptied AS (
      DELETE FROM notification_queue AS q
      USING waiting
      WHERE q.id = waiting.id AND q.recipient_ids <@ ARRAY[waiting.recipient_id]
    )
    UPDATE notification_queue AS q
    SET recipient_ids = array_remove(q.recipient_ids, waiting.recipient_id)
    FROM waiting
    WHERE q.id = waiting.id AND NOT q.recipient_ids <@ ARRAY[waiting.recipient_id]
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
}
