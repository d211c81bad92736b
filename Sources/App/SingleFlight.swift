import Synchronization

/// One operation at a time. Callers that come while it runs wait for the same result.
final class SingleFlight<Value: Sendable>: Sendable {
  private let running = Mutex<Task<Value, any Error>?>(nil)

  /// The operation that runs.
  var current: Task<Value, any Error>? { running.withLock { $0 } }

  /// The operation that runs. If there is none, `operation` begins.
  ///
  /// It is no child of the first caller: if that caller is cancelled, the others still need the result.
  func join(_ operation: @escaping @Sendable () async throws -> Value) -> Task<Value, any Error> {
    running.withLock { running in
      if let running { return running }
      let task = Task {
        // It ends before any caller has the result. A caller that cannot use the result can begin another operation.
        defer { self.running.withLock { $0 = nil } }
        return try await operation()
      }
      running = task
      return task
    }
  }

  func cancel() { current?.cancel() }
}
