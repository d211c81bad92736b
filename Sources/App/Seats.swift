import Postgres
import Synchronization

/// Limits how many callers do something concurrently. The others wait, first come, first served.
final class Seats: Sendable {
  private struct State {
    var free: Int
    var line = WaitingLine<Void>()
  }

  struct AreFull: Error {}

  private let state: Mutex<State>

  init(_ count: Int) {
    state = Mutex(State(free: count))
  }

  /// How many callers wait.
  var waiting: Int { state.withLock { $0.line.count } }

  /// Runs `body` when a seat is free. Cancelling the task ends the wait immediately.
  ///
  /// - Throws: ``AreFull`` if `limit` callers wait already.
  func hold<Value: Sendable>(
    waitingAtMost limit: Int = .max, _ body: () async throws -> Value
  ) async throws -> Value {
    try await take(waitingAtMost: limit)
    defer { leave() }
    return try await body()
  }

  /// Takes a seat. The caller gives it back with ``leave()``.
  ///
  /// - Throws: ``AreFull`` if `limit` callers wait already, `CancellationError` if the task is cancelled meanwhile.
  func take(waitingAtMost limit: Int = .max) async throws {
    try Task.checkCancellation()
    let turn = try state.withLock { state -> WaitingLine<Void>.Place? in
      guard state.free == 0 else {
        state.free -= 1
        return nil
      }
      guard state.line.count < limit else { throw AreFull() }
      return try state.line.join()
    }
    try await turn?.value()
  }

  func leave() {
    state.withLock { state in
      if !state.line.serve(()) { state.free += 1 }
    }
  }
}
