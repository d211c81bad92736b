/// A promised value. It is fulfilled once and awaited once by its caller, which may give up.
@usableFromInline final class Reply<Value: Sendable>: Sendable {
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
  @inlinable func fulfil(_ result: Result<Value, any Error>) -> Bool {
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
  @inlinable var isDone: Bool {
    state.withLock { if case .done = $0 { true } else { false } }
  }

  /// Waits for the value. Cancelling the task ends the wait immediately with `CancellationError`.
  @inlinable func value() async throws -> Value {
    try await withTaskCancellationHandler {
      try await uncancellableValue()
    } onCancel: {
      fulfil(.failure(CancellationError()))
    }
  }

  /// Waits for the value, even if the task is cancelled.
  @inlinable func uncancellableValue() async throws -> Value {
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
