import Foundation

/// Waits for a task without holding up a caller that is cancelled meanwhile. The task continues.
final class Wait<Value: Sendable>: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Value, any Error>?
    var result: Result<Value, any Error>?
  }

  private let state = Guarded(State())

  private init() {}

  /// - Throws: what the task throws; `CancellationError` if the caller is cancelled
  static func value(of task: Task<Value, any Error>) async throws -> Value {
    let wait = Wait()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        wait.begin(continuation)
        Task { wait.end(await task.result) }
      }
    } onCancel: {
      wait.end(.failure(CancellationError()))
    }
  }

  private func begin(_ continuation: CheckedContinuation<Value, any Error>) {
    let early = state.withLock { state in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let early { continuation.resume(with: early) }
  }

  private func end(_ result: Result<Value, any Error>) {
    let continuation = state.withLock { state in
      if state.result == nil { state.result = result }
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(with: result)
  }
}
