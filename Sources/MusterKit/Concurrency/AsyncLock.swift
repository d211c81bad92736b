import Foundation

/// A lock that tasks of this process wait for without blocking a thread, first come, first served.
final class AsyncLock: Sendable {
  private struct State {
    var isHeld = false
    var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    var nextID = 0
    /// Waits that were cancelled before they began.
    var cancelled: Set<Int> = []
  }

  private let state = Guarded(State())

  /// - Throws: what `body` throws, or `CancellationError` if the task is cancelled while it waits.
  func withLock<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
    try await acquire()
    defer { release() }
    return try await body()
  }

  private func acquire() async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let isAcquired = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isAcquired: Bool? = state.withLock { state in
          if state.cancelled.remove(id) != nil { return false }
          guard state.isHeld else {
            state.isHeld = true
            return true
          }
          state.waiting.append((id, continuation))
          return nil
        }
        if let isAcquired { continuation.resume(returning: isAcquired) }
      }
    } onCancel: {
      let continuation = state.withLock { state -> CheckedContinuation<Bool, Never>? in
        guard let place = state.waiting.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.waiting.remove(at: place).continuation
      }
      continuation?.resume(returning: false)
    }
    state.withLock { _ = $0.cancelled.remove(id) }
    if !isAcquired { throw CancellationError() }
  }

  private func release() {
    let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      guard !state.waiting.isEmpty else {
        state.isHeld = false
        return nil
      }
      return state.waiting.removeFirst().continuation
    }
    next?.resume(returning: true)
  }
}
