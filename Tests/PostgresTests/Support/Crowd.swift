import Foundation
import Postgres
import TestSupport
import Testing

/// Calls that a database makes wait. It rejects some of them.
struct Crowd {
  /// The results of those that were served.
  let served: [Int]
  let rejected: Int

  /// Makes calls while a transaction keeps them waiting, until enough of them are rejected. Then the others are served.
  ///
  /// - Parameters:
  ///   - holding: what the transaction does: nothing special, or it takes a lock.
  ///   - enough: callers on several threads may pass a limit together, so that fewer are rejected than the limit says.
  static func gather(
    _ count: Int, at database: Database, holding: SQL = "SELECT 1", untilRejected enough: Int,
    call: @escaping @Sendable (_ number: Int) async throws -> Int
  ) async throws -> Crowd {
    let (rejected, served) = (Collected<PostgresError>(), Collected<Int>())
    let calls = try await database.transaction { transaction in
      try await transaction.rows(holding)
      // A child task would count as part of this transaction's body.
      let calls = (0..<count).map { number in
        Task.detached {
          do {
            served.append(try await call(number))
          } catch let error as PostgresError {
            rejected.append(error)
          }
        }
      }
      try await eventually("callers are rejected") { rejected.count >= enough }
      #expect(served.count == 0)
      return calls
    }
    for call in calls { try await call.value }
    #expect(rejected.all.allSatisfy { $0.kind == .overloaded && $0.isUnavailable && !$0.mayHaveRun })
    #expect(served.count + rejected.count == count)
    return Crowd(served: served.all, rejected: rejected.count)
  }
}
