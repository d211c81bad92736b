/// A value that is on its way: fulfilled once by anybody, awaited once by its caller, who may give up waiting.
final class Reply<Value: Sendable>: Sendable {
  private enum State {
    case pending
    case awaited(UnsafeContinuation<Value, any Error>)
    case done(Result<Value, any Error>)
  }

  private let state = Lock(State.pending)

  /// Hands the value over. False if the caller gave up or was served already: the value is still the giver's then.
  @discardableResult
  func fulfil(_ result: Result<Value, any Error>) -> Bool {
    let (isFirst, waiting) = state.withLock { state -> (Bool, UnsafeContinuation<Value, any Error>?) in
      switch state {
      case .done:
        return (false, nil)
      case .pending:
        state = .done(result)
        return (true, nil)
      case .awaited(let continuation):
        state = .done(result)
        return (true, continuation)
      }
    }
    waiting?.resume(with: result)
    return isFirst
  }

  /// Whether it was fulfilled, or its caller gave up.
  var isDone: Bool {
    state.withLock { if case .done = $0 { true } else { false } }
  }

  /// Waits. Cancelling the task ends the wait at once with `CancellationError`.
  func value() async throws -> Value {
    try await withTaskCancellationHandler {
      try await uncancellableValue()
    } onCancel: {
      fulfil(.failure(CancellationError()))
    }
  }

  /// Waits, whether or not the task is cancelled meanwhile.
  func uncancellableValue() async throws -> Value {
    try await withUnsafeThrowingContinuation { continuation in
      let result = state.withLock { state -> Result<Value, any Error>? in
        if case .done(let result) = state { return result }
        state = .awaited(continuation)
        return nil
      }
      if let result { continuation.resume(with: result) }
    }
  }
}
