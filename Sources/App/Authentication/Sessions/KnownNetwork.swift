import Foundation
import Postgres

/// The networks that an account's sessions have come from. Codes and resets that are asked for there have a budget of
/// their own: see ``MailGate/Budget/known``. The database has fingerprints, and no address.
enum KnownNetwork {
  /// Seconds after which a network is forgotten if no session comes from it: half a year.
  private static let lifetime = 182 * 86_400
  /// Seconds for which a refresh does not note the same network again.
  private static let precision = 7 * 86_400

  /// A statement that notes a network of a user.
  ///
  /// - Parameter network: from ``AddressKeys/network(of:)``.
  static func noting(_ network: Data, of user: User.ID) -> SQL {
    """
    INSERT INTO known_networks (user_id, network) VALUES (\(user), \(network))
    ON CONFLICT (user_id, network) DO UPDATE SET seen_at = excluded.seen_at
    """
  }

  /// A condition: whether a network of a user was noted recently.
  ///
  /// - Parameter user: an id, as a column.
  static func isNoted(_ network: Data?, of user: SQL) -> SQL {
    """
    (\(network) IS NULL OR EXISTS (
      SELECT FROM known_networks
      WHERE user_id = \(user) AND network = \(network)
        AND seen_at > clock_timestamp() - make_interval(secs => \(Double(precision)))
    ))
    """
  }

  /// A condition: whether a session of a user has come from a network.
  ///
  /// - Parameter user: an id, as a column.
  static func isKnown(_ network: Data?, to user: SQL) -> SQL {
    "EXISTS (SELECT FROM known_networks WHERE user_id = \(user) AND network = \(network))"
  }

  /// A statement that forgets users' networks: someone else may have had a session.
  static func forgetting(of users: [User.ID]) -> SQL {
    "DELETE FROM known_networks WHERE user_id = ANY(\(users))"
  }

  /// Deletes networks from which no session has come for long.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge(
      "known_networks", key: "ctid", by: "seen_at",
      upTo: "now() - make_interval(secs => \(Double(lifetime)))", atMost: limit)
  }
}
