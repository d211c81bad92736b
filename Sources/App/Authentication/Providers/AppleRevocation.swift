import Foundation
import Postgres

/// A grant that Apple must revoke: a row of `apple_revocations`.
enum AppleRevocation {
  static let queue = LeaseQueue(table: "apple_revocations", chain: nil, columns: "q.sealed_grant")

  /// Seconds after which a revocation that still fails becomes a dead letter: a week.
  private static let patience = 7 * 86_400

  /// - Parameter grants: nil if Apple's key is not configured.
  static func source(_ grants: AppleGrants?, in database: Database) -> Dispatcher.Source {
    let policy = DeliveryState.Policy(patience: patience, longestPause: .milliseconds(500))
    return Dispatcher.Source(queue: queue, policy: policy) { rows in
      let leased = Set(
        try await database.rows("SELECT q.id FROM \(queue.rows(of: rows.map(\.lease)))").map { try $0[0] as Int64 })
      return Dictionary(
        uniqueKeysWithValues: rows.filter { leased.contains($0.id) }.map { row in
          let send = Dispatcher.Send(channel: .apple) {
            guard let grants else { throw DeliveryFailure(description: "Apple's key is not configured") }
            try await grants.revoke(try row.fields[0])
          }
          return (row.id, .send(send))
        })
    }
  }
}
