import Foundation

/// A value protected by a lock that is held only briefly.
///
/// The standard library's `Mutex` would work, but ThreadSanitizer does not understand it and reports false races. With
/// this lock, a clean report is meaningful. The tests' helpers also use it, hence `package`.
@usableFromInline package final class Lock<Value>: Sendable {
  @usableFromInline final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
    @inlinable deinit {
      _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
  }

  /// Safe to share, which the compiler cannot see: the value is read and written only while its mutex is held.
  @usableFromInline nonisolated(unsafe) let storage: ManagedBuffer<Value, pthread_mutex_t>

  @inlinable package init(_ value: sending Value) {
    storage = Storage.create(minimumCapacity: 1) { buffer in
      buffer.withUnsafeMutablePointerToElements { mutex in
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
      }
      return value
    }
  }

  @inlinable package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try storage.withUnsafeMutablePointers { value, mutex in
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }

  /// Does nothing and returns nil if another thread holds the lock.
  @inlinable package func withLockIfFree<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result? {
    try storage.withUnsafeMutablePointers { value, mutex in
      guard pthread_mutex_trylock(mutex) == 0 else { return nil }
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }
}

/// A promised value. It is fulfilled once and awaited once by its caller, which may give up.
@usableFromInline package final class Reply<Value: Sendable>: Sendable {
  @usableFromInline enum State {
    case pending
    case awaited(UnsafeContinuation<Void, Never>)
    case done(Result<Value, any Error>)
  }

  @usableFromInline let state = Lock(State.pending)

  @inlinable init() {}

  /// Hands the value over. Returns false if the caller gave up or already has a value. The value then stays with the
  /// sender.
  @discardableResult
  @inlinable package func fulfil(_ result: Result<Value, any Error>) -> Bool {
    let (isFirst, waiting) = state.withLock { state -> (Bool, UnsafeContinuation<Void, Never>?) in
      if case .done = state { return (false, nil) }
      defer { state = .done(result) }
      if case .awaited(let continuation) = state { return (true, continuation) }
      return (true, nil)
    }
    waiting?.resume()
    return isFirst
  }

  /// Whether it was fulfilled or its caller gave up.
  @inlinable package var isDone: Bool {
    state.withLock { if case .done = $0 { true } else { false } }
  }

  /// Waits for the value. Cancelling the task ends the wait immediately with `CancellationError`.
  @inlinable package func value() async throws -> Value {
    try await withTaskCancellationHandler {
      try await uncancellableValue()
    } onCancel: {
      fulfil(.failure(CancellationError()))
    }
  }

  /// Waits for the value, even if the task is cancelled.
  @inlinable package func uncancellableValue() async throws -> Value {
    await withUnsafeContinuation { continuation in
      let isDone = state.withLock { state in
        if case .done = state { return true }
        state = .awaited(continuation)
        return false
      }
      if isDone { continuation.resume() }
    }
    // The value comes from the lock and not from the continuation, so that ThreadSanitizer sees the order of write and
    // read.
    return try state.withLock { state in
      guard case .done(let result) = state else { preconditionFailure("resumed before there was a value") }
      return result
    }.get()
  }
}

/// Runs blocking calls, such as opening a connection, cancelling and scripts, off Swift's cooperative threads. The
/// service looks up hosts with it, hence `package`.
package enum BlockingWork {
  /// Uses a new thread for each call: a concurrent queue has only one thread per processor, and adds one each second.
  package static func run(_ work: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(work)
  }
}
