import Synchronization

/// One operation at a time. Callers that come while it runs wait for the same result.
final class SingleFlight<Value: Sendable>: Sendable {
  private let running = Mutex<Task<Value, any Error>?>(nil)

  var isRunning: Bool { running.withLock { $0 != nil } }

  /// The operation that runs. If there is none, `operation` begins.
  ///
  /// It is no child of the first caller: if that caller is cancelled, the others still need the result.
  func join(_ operation: @escaping @Sendable () async throws -> Value) -> Task<Value, any Error> {
    running.withLock { running in
      if let running { return running }
      let task = Task {
        // Before any caller has the result: if that is of no use, the caller gets another one.
        defer { self.running.withLock { $0 = nil } }
        return try await operation()
      }
      running = task
      return task
    }
  }

  func cancel() {
    running.withLock { $0 }?.cancel()
  }
}
