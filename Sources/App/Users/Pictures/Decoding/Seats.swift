import Synchronization

/// Limits how many callers do something concurrently. The others wait, first come, first served.
final class Seats: Sendable {
  private struct Waiter {
    let number: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var free: Int
    var waiters: [Waiter] = []
    /// The number of the next waiter.
    var next = 0
  }

  private let state: Mutex<State>

  init(_ count: Int) {
    state = Mutex(State(free: count))
  }

  /// How many callers wait.
  var waiting: Int { state.withLock { $0.waiters.count } }

  /// Runs `body` when a seat is free. Cancelling the task ends the wait immediately.
  func hold<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    try await sit()
    defer { leave() }
    return try await body()
  }

  private func sit() async throws {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let result = state.withLock { state -> Result<Void, any Error>? in
          // A cancellation before this point found no waiter.
          if Task.isCancelled { return .failure(CancellationError()) }
          guard state.free > 0 else {
            state.waiters.append(Waiter(number: number, continuation: continuation))
            return nil
          }
          state.free -= 1
          return .success(())
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      // Nil if it already has a seat. Then `body` gives the seat back.
      let waiter = state.withLock { state -> Waiter? in
        guard let place = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
        return state.waiters.remove(at: place)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }

  private func leave() {
    let next = state.withLock { state -> Waiter? in
      guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
      state.free += 1
      return nil
    }
    next?.continuation.resume()
  }
}
