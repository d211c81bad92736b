import Foundation
import Postgres

/// A worker's row in `workers`. It distinguishes a worker that died from one that is slow. Only the database's clock
/// counts.
enum Heartbeat {
  /// - Returns: a statement that writes this worker's heartbeat.
  static func writing(of id: UUID) -> SQL {
    """
    INSERT INTO workers AS w (id) VALUES (\(id))
    ON CONFLICT (id) DO UPDATE
    SET heartbeat_at = now(), steady_since = CASE WHEN \(isFresh) THEN w.steady_since ELSE now() END
    """
  }

  /// Whether this worker's heartbeats have arrived for a while without a gap. If so, those of all living workers have
  /// also arrived.
  static func isSteady(_ id: UUID) -> SQL {
    """
    EXISTS (
      SELECT FROM workers AS w
      WHERE w.id = \(id) AND \(isFresh)
        AND w.steady_since <= now() - make_interval(secs => \(LeaseQueue.heartbeatSeconds))
    )
    """
  }

  /// For a worker that has given back all its rows.
  static func removing(of id: UUID) -> SQL {
    "DELETE FROM workers WHERE id = \(id)"
  }

  /// Deletes workers that died more than a day ago.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("workers", by: "heartbeat_at", upTo: "now() - interval '1 day'", atMost: limit)
  }

  private static let isFresh: SQL =
    "w.heartbeat_at > now() - make_interval(secs => \(LeaseQueue.heartbeatSeconds))"
}
