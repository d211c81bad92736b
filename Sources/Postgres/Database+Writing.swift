import Synchronization

extension Database {
  /// Runs and commits one statement that writes. Cancelling the task stops the statement unless COMMIT was sent.
  ///
  /// - Throws: ``PostgresError``; `mayHaveRun` says whether the statement may have taken effect anyway.
  @discardableResult
  public func execute(_ sql: SQL) async throws -> Rows {
    try await repeated(true, on: pool, for: [sql]) { try await $0.rows(sql) }.value
  }

  /// Runs statements that are known in advance as one transaction, in one round trip. Even a single statement commits
  /// sooner than with ``execute(_:)``.
  ///
  /// The transaction is retried after a deadlock or a serialization failure. COMMIT is sent with the statements, so
  /// cancelling the task does not cancel them. They end by their deadline at the latest.
  @discardableResult
  public func batch(_ statements: SQL...) async throws -> [Rows] {
    try await repeated(true, on: pool, for: statements) { $0.atCommit(statements) }.results
  }

  /// Runs `body` in a transaction on an exclusive connection and commits when it returns. Any error rolls back.
  ///
  /// BEGIN is sent with the first statement. Statements given to ``Transaction/atCommit(_:)`` are sent with COMMIT.
  /// COMMIT is never cancelled, and its result is checked.
  ///
  /// - Parameters:
  ///   - isolation: nil for the default: read committed, unless the URL's options say otherwise.
  ///   - repeating: whether the body may run again from the start, up to 5 times in total, when the transaction loses a
  ///     deadlock or fails to serialize.
  ///   - isConflict: further errors after which `repeating` applies.
  ///   - body: may run more than once if `repeating` says so.
  /// - Throws: the body's error, or ``PostgresError``. Kind `unknownOutcome`: the connection broke during COMMIT.
  ///   Kind `misuse`: called inside another transaction's body, which would need two connections and deadlock the pool.
  public func transaction<Value: Sendable>(
    isolation: IsolationLevel? = nil, repeating: Bool = false,
    orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await repeated(repeating, orAfter: isConflict, on: pool, isolation: isolation, body).value
  }

  /// Like ``transaction(isolation:repeating:orAfter:_:)``, for a body that reads its final state in the round trip of
  /// COMMIT.
  ///
  /// - Returns: the body's value, and the results of the statements that it gave to ``Transaction/atCommit(_:)``, in
  ///   order.
  public func transactionWithResults<Value: Sendable>(
    isolation: IsolationLevel? = nil, repeating: Bool = false,
    orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, results: [Rows]) {
    try await repeated(repeating, orAfter: isConflict, on: pool, isolation: isolation, body)
  }

  /// Runs one statement as its own transaction, on a connection for slow reads.
  func runAlone(_ statement: SQL) async throws {
    try await call {
      let connection = try await slowPool.acquire(for: [statement])
      defer { slowPool.release(connection) }
      let timeout = configuration.timeout(of: 1, each: configuration.slowStatementTimeout)
      _ = try await connection.submit([statement.commented], timeout: timeout).value()
    }
  }

  /// Runs `body` in a transaction on a connection of the pool.
  ///
  /// - Parameter statements: the statements that the body is known to send.
  /// - Returns: the value of the body, and the results of the statements given to ``Transaction/atCommit(_:)``.
  func repeated<Value: Sendable>(
    _ isRepeatable: Bool, orAfter isConflict: (PostgresError) -> Bool = { _ in false }, on pool: Pool,
    isolation: IsolationLevel? = nil, for statements: [SQL] = [], _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, results: [Rows]) {
    if let current = Transaction.current, current.database === self, !current.isEnded {
      // A write among slow reads needs a connection of another pool. The reverse could deadlock the two.
      guard current.isSlowRead, pool === self.pool else {
        throw PostgresError(.misuse, "a transaction cannot begin inside the body of another")
      }
    }
    return try await call {
      var attempt = 1
      while true {
        do {
          return try await once(on: pool, isolation, for: statements, body)
        } catch let error as PostgresError
          where isRepeatable && (error.isRetryable || isConflict(error)) && attempt < 5
        {
          try await Task.sleep(for: .milliseconds(5 * attempt) * Double.random(in: 0.5...1.5))
          attempt += 1
        }
      }
    }
  }

  private func once<Value: Sendable>(
    on pool: Pool, _ isolation: IsolationLevel?, for statements: [SQL], _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, results: [Rows]) {
    let start = ContinuousClock.now
    let connection = try await pool.acquire(for: statements)
    observer.waited(.now - start)
    let transaction = Transaction(connection, of: self, isSlowRead: pool === slowPool, isolation: isolation)
    do {
      let value = try await Transaction.$current.withValue(transaction) { try await body(transaction) }
      let results = try await transaction.commit()
      pool.release(connection)
      return (value, results)
    } catch {
      await end(transaction, on: connection, of: pool, after: error)
      throw error
    }
  }

  private func end(
    _ transaction: Transaction, on connection: Connection, of pool: Pool, after error: any Error
  ) async {
    let failure = error as? PostgresError
    if failure?.kind == .unknownOutcome || failure?.isFromReadOnlyServer == true {
      // Either a COMMIT may still be running: close the connection, but never cancel it. Or the server became a
      // standby: only a new connection finds the new primary.
      connection.close(isFailure: failure?.isFromReadOnlyServer == true)
      pool.release(connection)
    } else if connection.depth.load(ordering: .relaxed) > 0 {
      // The server still runs a statement that the caller gave up on. The caller does not wait for its end.
      Task.detached {
        await transaction.abandon()
        pool.release(connection)
      }
    } else {
      await transaction.rollback()
      pool.release(connection)
    }
  }
}
