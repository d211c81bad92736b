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

/// A value behind a lock. Safe to share, which the compiler cannot see: the value is read and written only while the
/// lock is held. `Mutex` needs iOS 18.
final class Guarded<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

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
