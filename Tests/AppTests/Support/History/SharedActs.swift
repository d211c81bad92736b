import Postgres
import Synchronization

@testable import App

/// The requests and events that users can act on, shared by all users.
final class SharedActs: Sendable {
  struct Request: Sendable {
    let id: String
    let sender: Int
    let receiver: Int
  }

  struct Plan: Sendable {
    let id: String
    let host: Int
  }

  private let state = Mutex<(requests: [Request], plans: [Plan])>(([], []))

  /// Only the newest ones, because older ones are mostly closed.
  var requests: [Request] { state.withLock { Array($0.requests.suffix(12)) } }
  var plans: [Plan] { state.withLock { Array($0.plans.suffix(12)) } }

  func add(_ request: Request) { state.withLock { $0.requests.append(request) } }
  func add(_ plan: Plan) { state.withLock { $0.plans.append(plan) } }

  /// - Returns: the number of plans.
  func forgetPlans() -> Int {
    state.withLock { state in
      defer { state.plans = [] }
      return state.plans.count
    }
  }

  var planCount: Int { state.withLock { $0.plans.count } }
}
