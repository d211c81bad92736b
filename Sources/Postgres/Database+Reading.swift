import Synchronization

extension Database {
  /// Runs read-only statements in one round trip. Each statement sees its own snapshot.
  ///
  /// The statements of other callers run in the same session. A statement that changes the session, such as SET, LISTEN
  /// or a session's advisory lock, belongs on a connection of its own: see
  /// ``transaction(isolation:repeating:orAfter:_:)``. If one is sent here anyway, its connection takes no other callers
  /// and is closed afterwards.
  ///
  /// - Throws: ``PostgresError``; a statement that writes fails with SQLSTATE 25006.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    let statements = statements.commented
    let timeout = configuration.timeout(of: statements.count)
    let deadline = ContinuousClock.now + timeout
    return try await call {
      // All shared connections may have broken at the same time.
      var attempts = sharedConnections.count
      while true {
        do {
          return try await sendOnce(statements, timeout: timeout, by: deadline)
        } catch let error as PostgresError where error.isRetryableRead && .now < deadline && attempts > 0 {
          // If the connection closed before the statements were sent, this was not an attempt.
          if error.kind != .connectionLost || error.mayHaveRun { attempts -= 1 }
        }
      }
    }
  }

  private func sendOnce(
    _ statements: [SQL], timeout: Duration, by deadline: ContinuousClock.Instant
  ) async throws -> [Rows] {
    guard let first = sharedConnections.first else {
      throw PostgresError(.misuse, "this database was configured without shared connections")
    }
    var best: Connection?
    var shortestWait = Int64.max
    var isAllOpen = true
    for shared in sharedConnections {
      guard let open = shared.openConnection else {
        isAllOpen = false
        continue
      }
      var wait = open.expectedWait()
      if wait == 0, !open.isHealthy {
        open.close()
        isAllOpen = false
        continue
      }
      // A connection that is full of large statements is the last choice.
      if open.bytes.load(ordering: .relaxed) >= configuration.maximumWaitingBytes { wait = .max - 1 }
      if wait < shortestWait { (best, shortestWait) = (open, wait) }
    }
    // A closed shared connection is opened when the others are busy. Callers wait for it only if no other is open.
    if best != nil, !isAllOpen, shortestWait > 0 {
      for shared in sharedConnections { shared.openInBackground() }
    }
    let connection = if let best { best } else { try await first.connection(for: statements, by: deadline) }
    guard connection.depth.load(ordering: .relaxed) < configuration.maximumWaiting,
      connection.bytes.load(ordering: .relaxed) < configuration.maximumWaitingBytes
    else { throw PostgresError(.overloaded, "too many statements are in flight") }
    return try await connection.submit(statements, timeout: timeout, by: deadline).value()
  }

  /// Slow reads. Each batch gets an exclusive connection, so that it does not delay short reads on a shared connection.
  /// There are a quarter as many of these connections as for transactions, in addition to them. Further slow reads
  /// wait. The server limits each statement to ``Configuration/slowStatementTimeout`` and rejects writes.
  public var slow: SlowReads { SlowReads(database: self) }
}
