/// An open transaction, created by ``Database/transaction(isolation:repeating:orAfter:_:)``. Only one task may use it,
/// inside the body.
public final class Transaction: Querying {
  private enum Phase {
    /// Nothing was sent, not even BEGIN.
    case fresh
    case begun
    /// A wait ended early, so it is unknown whether that statement ran.
    case uncertain
    case ended
  }

  private struct State {
    var phase = Phase.fresh
    /// Statements to send with the next one.
    var written: [SQL] = []
    /// Why one of them can never be sent. Nothing after it can be sent either.
    var problem: PostgresError?
    var last: [SQL] = []
  }

  /// The transaction whose body the task runs.
  @TaskLocal static var current: Transaction?
  /// The database that it runs on.
  let database: Database
  /// Whether the database is configured as ``Database/Configuration/isPortable``.
  public var isPortable: Bool { database.isPortable }
  private let connection: Connection
  /// Whether it is one of ``Database/slow``.
  let isSlowRead: Bool
  /// The statement that begins it.
  private let begin: SQL
  /// The server's limit for each statement.
  private let limit: Duration
  private let state = Lock(State())

  init(_ connection: Connection, of database: Database, isSlowRead: Bool, isolation: IsolationLevel?) {
    self.connection = connection
    self.database = database
    self.isSlowRead = isSlowRead
    // Behind a pooler, the session itself is not read-only.
    begin = IsolationLevel.begin(isolation, isReadOnly: isSlowRead)
    let configuration = database.configuration
    limit = isSlowRead ? configuration.slowStatementTimeout : configuration.statementTimeout
  }

  var isEnded: Bool {
    state.withLock { $0.phase == .ended }
  }

  /// Sends the statements in one round trip and returns the result of each. BEGIN is sent with the first statement of
  /// the transaction.
  ///
  /// - Throws: ``PostgresError`` for the first statement that failed, or `CancellationError`. After an error from the
  ///   server, the transaction can continue only from a SAVEPOINT of its own. After a timeout or a cancellation, it
  ///   cannot continue.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    // Throw before the state says that BEGIN was sent.
    if let problem = statements.problem { throw problem }
    // Submitting does not wait for the server, so it happens under the lock: concurrent statements cannot overtake BEGIN
    // or follow COMMIT.
    let (reply, count) = try state.withLock { state in
      switch state.phase {
      case .fresh, .begun:
        if let problem = state.problem { throw problem }
        var all = waiting(&state, beside: statements.count)
        let count = all.count
        state.phase = .begun
        all += statements.commented
        let timeout = database.configuration.timeout(of: all.count, each: limit)
        return (connection.submit(all, timeout: timeout), count)
      case .uncertain:
        throw Self.uncertain
      case .ended:
        throw PostgresError(.misuse, "the transaction has ended")
      }
    }
    do {
      return Array(try await reply.value().dropFirst(count))
    } catch var error as PostgresError {
      if error.kind == .timeout { giveUp() }
      // An uncommitted statement has no effect.
      error.mayHaveRun = false
      throw error
    } catch {
      giveUp()
      throw error
    }
  }

  /// Takes the statements that go before others: BEGIN, unless it was sent, and the statements that were written.
  ///
  /// - Parameter count: how many other statements there are.
  private func waiting(_ state: inout State, beside count: Int) -> [SQL] {
    var statements: [SQL] = []
    statements.reserveCapacity(1 + state.written.count + count)
    if state.phase == .fresh { statements.append(begin) }
    statements += state.written
    state.written = []
    return statements
  }

  private static let uncertain = PostgresError(
    .transactionAborted, "a statement timed out or was cancelled: the transaction can only be rolled back")

  /// Prevents a body that swallows a timeout from committing an unknown state.
  private func giveUp() {
    state.withLock { if $0.phase == .begun { $0.phase = .uncertain } }
  }

  /// Queues a statement whose result is not needed. It is sent with the next statement or with COMMIT, and that call
  /// throws its error.
  ///
  /// - Throws: ``PostgresError`` of kind `misuse` after the transaction's end.
  public func write(_ statement: SQL) throws {
    try state.withLock { state in
      guard state.phase != .ended else { throw PostgresError(.misuse, "the transaction has ended") }
      state.problem = state.problem ?? statement.problem
      state.written.append(statement.commented)
    }
  }

  /// Adds statements that run last, in the round trip of COMMIT. Their errors roll everything back.
  public func atCommit(_ statements: SQL...) {
    atCommit(statements)
  }

  func atCommit(_ statements: [SQL]) {
    state.withLock { state in
      for statement in statements { state.last.append(statement.commented) }
    }
  }

  /// - Returns: the results of the statements given to ``atCommit(_:)``.
  func commit() async throws -> [Rows] {
    let (reply, count) = try state.withLock { state -> (Reply<[Rows]>?, Int) in
      guard state.phase != .uncertain else { throw Self.uncertain }
      if let problem = state.problem { throw problem }
      if state.phase == .fresh, state.written.isEmpty, state.last.isEmpty {
        state.phase = .ended
        return (nil, 0)
      }
      let count = state.last.count
      var all = waiting(&state, beside: count + 1)
      state.phase = .ended
      all += state.last
      all.append("COMMIT")
      let timeout = database.configuration.timeout(of: all.count, each: limit)
      return (connection.submit(all, timeout: timeout), count)
    }
    guard let reply else { return [] }
    let results: [Rows]
    do {
      // Never cancelled: without the result, the outcome would be unknown.
      results = try await reply.uncancellableValue()
    } catch let error as PostgresError where error.mayHaveRun || error.endsConnection {
      throw PostgresError(.unknownOutcome, "the outcome of COMMIT is unknown: \(error.message)", mayHaveRun: true)
    }
    let tag = results.last?.commandTag
    guard tag == "COMMIT" else {
      throw PostgresError(.transactionAborted, "COMMIT returned \(tag ?? "nothing")")
    }
    return Array(results.suffix(count + 1).dropLast())
  }

  /// Rolls back and waits for it, so that a retry does not run into its own locks.
  func rollback() async {
    let phase = state.withLock { state in
      defer { state.phase = .ended }
      return state.phase
    }
    // If the batch of COMMIT failed, the transaction is still open in a failed state, so `ended` also needs a rollback.
    guard phase != .fresh, connection.isOpen, !connection.isIdle else { return }
    do {
      let timeout = database.configuration.timeout(of: 1)
      _ = try await connection.submit(["ROLLBACK"], timeout: timeout).uncancellableValue()
    } catch {
      connection.close()
    }
  }

  /// Cancels the abandoned statement, then rolls back. If the server does not respond in time, closes the connection.
  ///
  /// The cancel request cannot hit the connection's next owner: either it has completed and a round trip has followed
  /// it, or the connection is closed.
  func abandon() async {
    state.withLock { $0.phase = .ended }
    guard await connection.cancelRunning(within: .seconds(2)) else {
      connection.close()
      return
    }
    do {
      _ = try await connection.submit(["ROLLBACK"], timeout: .seconds(5)).uncancellableValue()
    } catch {
      connection.close()
    }
  }
}

/// How much a transaction sees of others that commit while it runs.
public enum IsolationLevel: Sendable {
  /// Each statement sees the changes that were committed before it began.
  case readCommitted
  /// All statements see the changes that were committed before the first one. An UPDATE of a row that has changed since
  /// fails with SQLSTATE 40001: see ``PostgresError/isRetryable``.
  case repeatableRead
  /// As if transactions ran one after the other. One that would break this fails with SQLSTATE 40001, at COMMIT at the
  /// latest.
  case serializable

  /// The statement that begins a transaction.
  ///
  /// - Parameter level: nil for the session's default.
  static func begin(_ level: IsolationLevel?, isReadOnly: Bool) -> SQL {
    switch (level, isReadOnly) {
    case (nil, false): "BEGIN"
    case (nil, true): "BEGIN READ ONLY"
    case (.readCommitted, false): "BEGIN ISOLATION LEVEL READ COMMITTED"
    case (.readCommitted, true): "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
    case (.repeatableRead, false): "BEGIN ISOLATION LEVEL REPEATABLE READ"
    case (.repeatableRead, true): "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    case (.serializable, false): "BEGIN ISOLATION LEVEL SERIALIZABLE"
    case (.serializable, true): "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
    }
  }
}
