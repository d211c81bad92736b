import Logging
import Synchronization

/// A PostgreSQL database. An application creates one and keeps it for its whole lifetime.
///
/// - Reads: ``send(_:)`` and the methods that ``Querying`` builds on it, from any number of tasks. They share a few
///   connections in pipeline mode. Their sessions are read-only, so a statement has no effect and is sent again on
///   another connection when its own breaks. If the session is not read-only, it is not sent again.
/// - Writes: ``transaction(isolation:repeating:orAfter:_:)`` or ``execute(_:)``, on an exclusive connection of a pool.
///
/// Every wait has a deadline. Cancelling the calling task ends its wait immediately.
public final class Database: Querying {
  @usableFromInline let configuration: Configuration
  let hints = Hints()
  private let observer: Observer
  private let connecting: Connecting
  /// Its thread keeps it alive until ``close()``.
  let reactor: Reactor
  private let sharedConnections: [SharedConnection]
  private let pool: Pool
  /// A separate pool, so that slow reads never delay writes.
  fileprivate let slowPool: Pool
  private let closed = Atomic(false)
  private let isDraining = Atomic(false)
  /// The task finishes calls that began before the database was closing.
  @TaskLocal static var isFinishing = false
  /// The number of calls that run.
  private let calls = Atomic(0)

  /// Opens no connection. The first statement does.
  public init(_ configuration: Configuration) throws {
    self.configuration = configuration
    let observer = Observer(logger: configuration.logger, slow: configuration.slowStatement)
    let all = Lock<(sharedConnections: [SharedConnection], pool: Pool, slowPool: Pool)?>(nil)
    let reactor = try Reactor { now in
      guard let (sharedConnections, pool, slowPool) = all.withLock({ $0 }) else { return }
      for shared in sharedConnections { shared.tick(at: now) }
      observer.note(pool.tick(at: now))
      _ = slowPool.tick(at: now)
    }
    let connecting = configuration.connecting
    // Behind a pooler, sessions are shared, so names of prepared statements would clash.
    let naming = configuration.isBehindPooler ? PreparedStatements.Naming.never : .always
    let lifetime = configuration.maximumLifetime
    let sharedConnections = (0..<configuration.sharedConnections).map { _ in
      SharedConnection(configuration) {
        try await connecting.open(.shared) {
          try Connection($0, for: .shared, naming: naming, observer: observer, reactor: reactor, lifetime: lifetime)
        }
      }
    }
    func makePool(_ size: Int, for purpose: Connecting.Purpose) -> Pool {
      Pool(configuration, size: size) {
        try await connecting.open(purpose) {
          try Connection(
            $0, for: purpose, naming: naming, observer: observer, reactor: reactor, lifetime: lifetime)
        }
      }
    }
    let pool = makePool(configuration.connections, for: .exclusive)
    let slowPool = makePool(max(1, configuration.connections / 4), for: .slow)
    all.withLock { $0 = (sharedConnections, pool, slowPool) }
    self.observer = observer
    self.connecting = connecting
    self.reactor = reactor
    self.sharedConnections = sharedConnections
    self.pool = pool
    self.slowPool = slowPool
  }

  /// Runs tasks on the thread that receives this database's results, so that a task sends a statement and continues
  /// with its result without waking another thread:
  ///
  ///     await withTaskExecutorPreference(database.executor) { ... }
  ///
  /// While more than a few tasks are ready, and after ``close()``, they run in the global pool as usual. A task that
  /// blocks the thread, or computes for milliseconds, delays the results of all others: send such work to
  /// `globalConcurrentExecutor`.
  public var executor: any TaskExecutor { reactor }

  /// See ``Configuration/isPortable``.
  public var isPortable: Bool { configuration.isPortable }

  var isClosed: Bool { closed.load(ordering: .relaxed) }

  /// Opens a separate connection that receives notifications.
  func openListener(_ onEvent: @escaping @Sendable (ListenerEvent?) -> Void) async throws -> Connection {
    try await connecting.open(.exclusive) { [observer, reactor] in
      try Connection($0, for: .exclusive, naming: .never, observer: observer, reactor: reactor, onEvent: onEvent)
    }
  }

  deinit {
    close()
  }

  /// Runs a call of this database's API, unless it is closing. ``close(drainingFor:)`` waits for the call's end.
  @usableFromInline func call<Value>(_ body: () async throws -> Value) async throws -> Value {
    calls.wrappingAdd(1, ordering: .sequentiallyConsistent)
    defer { calls.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
    if isDraining.load(ordering: .sequentiallyConsistent) {
      let transaction = Transaction.current
      guard Self.isFinishing || transaction?.database === self && transaction?.isEnded == false else {
        throw PostgresError(.cannotConnect, "the database is closed")
      }
    }
    return try await body()
  }

  /// Rejects new calls, waits until the running ones have ended, and closes all connections.
  ///
  /// - Parameter limit: how long to wait. The calls that still run after it, or once the task is cancelled, fail.
  public func close(drainingFor limit: Duration) async {
    isDraining.store(true, ordering: .sequentiallyConsistent)
    let end = ContinuousClock.now + limit
    while calls.load(ordering: .sequentiallyConsistent) > 0, .now < end, !Task.isCancelled {
      try? await Task.sleep(for: .milliseconds(10))
    }
    close()
  }

  /// Closes all connections immediately. Statements in flight fail, and sequences of notifications end. The database
  /// cannot be used afterwards. A database is also closed when its last reference goes away.
  public func close() {
    closed.store(true, ordering: .relaxed)
    for shared in sharedConnections { shared.close() }
    pool.close()
    slowPool.close()
    reactor.stop()
  }
}

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

  private func sendOnce(_ statements: [SQL], timeout: Duration, by deadline: ContinuousClock.Instant) async throws
    -> [Rows]
  {
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
      if open.hasBytes(atLeast: configuration.maximumWaitingBytes) { wait = .max - 1 }
      if wait < shortestWait { (best, shortestWait) = (open, wait) }
    }
    // A closed shared connection is opened when the others are busy. Callers wait for it only if no other is open.
    if best != nil, !isAllOpen, shortestWait > 0 { for shared in sharedConnections { shared.openInBackground() } }
    let connection = if let best { best } else { try await first.connection(for: statements, by: deadline) }
    if connection.hasBatches(atLeast: configuration.maximumWaiting)
      || connection.hasBytes(atLeast: configuration.maximumWaitingBytes)
    {
      throw PostgresError(.overloaded, "too many statements are in flight")
    }
    return try await connection.submit(statements, timeout: timeout, by: deadline).value()
  }

  /// Slow reads. Each batch gets an exclusive connection, so that it does not delay short reads on a shared connection.
  /// There are a quarter as many of these connections as for transactions, in addition to them. Further slow reads
  /// wait. The server limits each statement to ``Configuration/slowStatementTimeout`` and rejects writes.
  public var slow: SlowReads { SlowReads(database: self) }
}

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
  ///     deadlock or fails to serialize. 20 times if the database ``Configuration/isPortable``.
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
  fileprivate func repeated<Value: Sendable>(
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
        do { return try await once(on: pool, isolation, for: statements, body) } catch let error as PostgresError
          where isRepeatable && (error.isRetryable || isConflict(error)) && attempt < configuration.maximumAttempts
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

  private func end(_ transaction: Transaction, on connection: Connection, of pool: Pool, after error: any Error) async {
    let failure = error as? PostgresError
    if failure?.kind == .unknownOutcome || failure?.isFromReadOnlyServer == true {
      // Either a COMMIT may still be running: close the connection, but never cancel it. Or the server became a
      // standby: only a new connection finds the new primary.
      connection.close(isFailure: failure?.isFromReadOnlyServer == true)
      pool.release(connection)
    } else if connection.isBusy {
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

/// Reads on exclusive connections: see ``Database/slow``.
public struct SlowReads: Querying {
  fileprivate let database: Database

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    try await database.repeated(true, on: database.slowPool, for: statements) { try await $0.send(statements) }.value
  }

  /// Runs several reads in one read-only transaction. With ``IsolationLevel/repeatableRead``, they see one snapshot.
  ///
  /// The body may write with other transactions of the same database. It runs only once.
  public func transaction<Value: Sendable>(
    isolation: IsolationLevel? = nil, _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await database.repeated(false, on: database.slowPool, isolation: isolation, body).value
  }
}

/// Something that runs statements: a ``Database`` or a ``Transaction``.
public protocol Querying: Sendable {
  /// Sends the statements in one round trip and returns the result of each. Throws the first error.
  func send(_ statements: [SQL]) async throws -> [Rows]
}

extension Querying {
  /// All rows of one statement.
  @discardableResult
  public func rows(_ sql: SQL) async throws -> Rows {
    try await send([sql])[0]
  }

  /// The first row, or nil if there is none.
  public func first(_ sql: SQL) async throws -> Row? {
    try await rows(sql).first
  }

  /// The single column of the first row, or nil if there is no row.
  public func value<Value: SQLValue>(_ sql: SQL, as: Value.Type = Value.self) async throws -> Value? {
    try await first(sql).map { try $0[0] as Value }
  }

  /// Several statements in one round trip, in order. An error in one skips the following ones.
  @discardableResult
  public func pipeline(_ statements: SQL...) async throws -> [Rows] {
    try await send(statements)
  }
}
