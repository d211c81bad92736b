import Logging
import Synchronization

/// A PostgreSQL database. An application creates one and keeps it for its whole life.
///
/// - Reads: ``send(_:)`` and the methods that ``Querying`` builds on it, from any number of tasks. They share a few
///   connections in pipeline mode. Their sessions are read-only, so a statement has no effect and is sent again on
///   another connection when its own breaks.
/// - Writes: ``transaction(repeating:_:)`` or ``execute(_:)``, on an exclusive connection from a pool.
///
/// Every wait has a deadline. Cancelling the calling task ends its wait at once.
public final class Database: Querying {
  /// The server, the number of connections, and the time limits.
  public struct Configuration: Sendable {
    /// A libpq URI or `key=value` string. Several hosts are tried in order for one that accepts writes, unless
    /// `target_session_attrs` says otherwise.
    public var url: String
    /// The name that `pg_stat_activity` shows.
    public var applicationName = "swift"
    /// The number of connections that reads share.
    public var sharedConnections = 2
    /// The maximum number of connections for transactions. Commits that wait together share one flush of the log.
    public var connections = 16
    /// The time limit for each host of the URL. Hosts are tried one by one, starting with the last one that responded.
    public var connectTimeout = Duration.seconds(2)
    /// The time limit for acquiring a connection.
    public var waitTimeout = Duration.seconds(5)
    /// The time limit for each statement, enforced by the server. The client stops waiting one second later: for n
    /// statements sent together, after n times this limit and one second. This bounds a read as a whole, including all
    /// its retries.
    public var statementTimeout = Duration.seconds(10)
    /// The time limit for each lock that a statement waits for, enforced by the server: SQLSTATE 55P03, see
    /// ``PostgresError/isLockTimeout``. It is capped at half of ``statementTimeout``, so that a wait for a lock is
    /// reported as such and not as a slow statement.
    public var lockTimeout = Duration.seconds(5)
    /// The server ends a session that leaves its transaction idle for this long.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// The maximum number of waiting callers, for each shared connection and for the pool. Further callers are rejected
    /// with `overloaded`.
    public var maximumWaiting = 1024
    /// The limit on the parameter bytes of all waiting callers, for each shared connection and for the pool. Once it is
    /// reached, further callers are rejected with `overloaded`. Statements sent by a transaction's body do not count,
    /// because they are unknown before it runs.
    public var maximumWaitingBytes = 64 << 20
    /// Set this if connections go through PgBouncer or another pooler in transaction mode. The client then relies on no
    /// session state: no prepared statements, no settings (give the role its `statement_timeout`, `lock_timeout`
    /// and `idle_in_transaction_session_timeout`), no protection against writes among reads, and no LISTEN.
    public var isBehindPooler = false
    /// Receives slow statements, without their parameters.
    public var logger = Logger(label: "postgres")
    /// A batch of statements that takes longer than this is logged.
    public var slowStatement = Duration.seconds(1)

    /// - Parameter url: see ``url``. It is not validated here.
    public init(url: String) {
      self.url = url
    }

    /// Whether libpq can parse the URL. Does not check that the server exists.
    public var isWellFormed: Bool {
      (try? Connecting.parse(url)) != nil
    }
  }

  let configuration: Configuration
  /// Channels that were sent a hint within the last 50 ms, and whether another is due: see ``notify(_:)``.
  let hints = Lock<[String: Bool]>([:])
  private let observer: Observer
  private let connecting: Connecting
  private let reactor: Reactor
  private let sharedConnections: [SharedConnection]
  private let pool: Pool
  /// A separate pool, so that slow reads never delay writes.
  private let slowPool: Pool
  private let closed = Atomic(false)

  /// Opens no connection. The first statement does.
  public init(_ configuration: Configuration) throws {
    self.configuration = configuration
    let observer = Observer(logger: configuration.logger, slow: configuration.slowStatement)
    let all = Lock<(sharedConnections: [SharedConnection], pool: Pool, slowPool: Pool)?>(nil)
    let reactor = try Reactor { now in
      guard let (sharedConnections, pool, slowPool) = all.withLock({ $0 }) else { return }
      for shared in sharedConnections { shared.expire(at: now) }
      observer.note(pool.tick(at: now))
      _ = slowPool.tick(at: now)
    }
    let connecting = configuration.connecting
    // Behind a pooler, sessions are shared, so names of prepared statements would clash.
    let naming = configuration.isBehindPooler ? PreparedStatements.Naming.never : .always
    let sharedConnections = (0..<configuration.sharedConnections).map { _ in
      SharedConnection(configuration) {
        try await connecting.open(.shared) {
          try Connection($0, for: .shared, naming: naming, observer: observer, reactor: reactor)
        }
      }
    }
    func makePool(_ size: Int) -> Pool {
      Pool(configuration, size: size) {
        try await connecting.open(.exclusive) {
          try Connection($0, for: .exclusive, naming: naming, observer: observer, reactor: reactor)
        }
      }
    }
    let (pool, slowPool) = (makePool(configuration.connections), makePool(max(1, configuration.connections / 4)))
    all.withLock { $0 = (sharedConnections, pool, slowPool) }
    self.observer = observer
    self.connecting = connecting
    self.reactor = reactor
    self.sharedConnections = sharedConnections
    self.pool = pool
    self.slowPool = slowPool
  }

  var isClosed: Bool { closed.load(ordering: .relaxed) }

  /// Opens a separate connection that receives notifications.
  func openListener(_ hear: @escaping @Sendable (ListenerEvent?) -> Void) async throws -> Connection {
    try await connecting.open(.exclusive) { [observer, reactor] in
      try Connection($0, for: .exclusive, naming: .never, observer: observer, reactor: reactor, hear: hear)
    }
  }

  /// Closes all connections. Statements in flight fail, and sequences of notifications end. The database cannot be used
  /// afterwards.
  public func close() {
    closed.store(true, ordering: .relaxed)
    for shared in sharedConnections { shared.close() }
    pool.close()
    slowPool.close()
    reactor.stop()
  }

  /// Runs read-only statements in one round trip. Each statement sees its own snapshot.
  ///
  /// - Throws: ``PostgresError``; a statement that writes fails with SQLSTATE 25006.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    let statements = statements.commented
    // Reads change nothing, so retrying is safe. All shared connections may have broken at the same time.
    let timeout = configuration.timeout(of: statements.count)
    let deadline = ContinuousClock.now + timeout
    for _ in sharedConnections {
      do {
        return try await sendOnce(statements, timeout: timeout, by: deadline)
      } catch let error as PostgresError where error.isWorthAskingAgain && .now < deadline {
        continue
      }
    }
    return try await sendOnce(statements, timeout: timeout, by: deadline)
  }

  private func sendOnce(
    _ statements: [SQL], timeout: Duration, by deadline: ContinuousClock.Instant
  ) async throws -> [Rows] {
    guard let first = sharedConnections.first else {
      throw PostgresError(.misuse, "this database was configured without shared connections")
    }
    var idlest: Connection?
    var depth = Int.max
    var isAllOpen = true
    for shared in sharedConnections {
      guard let open = shared.openConnection else {
        isAllOpen = false
        continue
      }
      var openDepth = open.depth.load(ordering: .relaxed)
      if openDepth == 0, !open.isTrusted {
        open.close()
        isAllOpen = false
        continue
      }
      // A connection that is full of large statements is the last choice.
      if open.bytes.load(ordering: .relaxed) >= configuration.maximumWaitingBytes { openDepth = .max - 1 }
      if openDepth < depth { (idlest, depth) = (open, openDepth) }
    }
    // A closed shared connection is opened when the others are busy. Callers wait for it only if no other is open.
    if idlest != nil, !isAllOpen, depth > 0 {
      for shared in sharedConnections { shared.openInBackground() }
    }
    let connection = if let idlest { idlest } else { try await first.connection(for: statements, by: deadline) }
    guard connection.depth.load(ordering: .relaxed) < configuration.maximumWaiting,
      connection.bytes.load(ordering: .relaxed) < configuration.maximumWaitingBytes
    else { throw PostgresError(.overloaded, "too many statements are in flight") }
    return try await connection.submit(statements, timeout: timeout, by: deadline).value()
  }

  /// Slow reads. Each batch gets an exclusive connection, so that it does not delay short reads on a shared connection.
  /// There are a quarter as many of these connections as for transactions, in addition to them. Further slow reads
  /// wait.
  public var slow: SlowReads { SlowReads(database: self) }

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
    try await repeated(true, on: pool, for: statements) { $0.atCommit(statements) }.last
  }

  /// Runs `body` in a transaction on an exclusive connection and commits when it returns. Any error rolls back.
  ///
  /// BEGIN is sent with the first statement. Statements given to ``Transaction/atCommit(_:)`` are sent with COMMIT.
  /// COMMIT is never cancelled, and its result is checked.
  ///
  /// - Parameters:
  ///   - repeating: whether the body may run again from the start, up to 5 times in total, when the transaction loses a
  ///     deadlock or fails to serialize.
  ///   - isConflict: further errors after which `repeating` applies.
  /// - Throws: the body's error, or ``PostgresError``. Kind `unknownOutcome`: the connection broke during COMMIT.
  ///   Kind `misuse`: called inside another transaction's body, which would need two connections and deadlock the pool.
  public func transaction<Value: Sendable>(
    repeating: Bool = false, orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await repeated(repeating, orAfter: isConflict, on: pool, body).value
  }

  /// Like ``transaction(repeating:orAfter:_:)``, for a body that reads its final state in the round trip of COMMIT.
  ///
  /// - Returns: the body's value, and the results of the statements that it gave to ``Transaction/atCommit(_:)``, in
  ///   order.
  public func transactionWithResults<Value: Sendable>(
    repeating: Bool = false, orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, results: [Rows]) {
    let (value, results) = try await repeated(repeating, orAfter: isConflict, on: pool, body)
    return (value, results)
  }

  func readSlowly(_ statements: [SQL]) async throws -> [Rows] {
    try await repeated(true, on: slowPool, for: statements) { try await $0.send(statements) }.value
  }

  /// Runs one statement as its own transaction, on a connection for slow reads.
  func runAlone(_ statement: SQL) async throws {
    let connection = try await slowPool.acquire(for: [statement])
    defer { slowPool.release(connection) }
    _ = try await connection.submit([statement.commented], timeout: configuration.timeout(of: 1)).value()
  }

  /// - Parameter statements: the statements that the body is known to send.
  private func repeated<Value: Sendable>(
    _ isRepeatable: Bool, orAfter isConflict: (PostgresError) -> Bool = { _ in false }, on pool: Pool,
    for statements: [SQL] = [], _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, last: [Rows]) {
    if let current = Transaction.current, current.database === self, !current.isEnded {
      throw PostgresError(.misuse, "a transaction cannot begin inside the body of another")
    }
    var attempt = 1
    while true {
      do {
        return try await once(on: pool, for: statements, body)
      } catch let error as PostgresError
        where isRepeatable && (error.isRetryable || isConflict(error)) && attempt < 5
      {
        try await Task.sleep(for: .milliseconds(5 * attempt) * Double.random(in: 0.5...1.5))
        attempt += 1
      }
    }
  }

  private func once<Value: Sendable>(
    on pool: Pool, for statements: [SQL], _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, last: [Rows]) {
    let start = ContinuousClock.now
    let connection = try await pool.acquire(for: statements)
    observer.waited(.now - start)
    let transaction = Transaction(connection, of: self)
    do {
      let value = try await Transaction.$current.withValue(transaction) { try await body(transaction) }
      let last = try await transaction.commit()
      pool.release(connection)
      return (value, last)
    } catch {
      await end(transaction, on: connection, of: pool, after: error)
      throw error
    }
  }

  private func end(
    _ transaction: Transaction, on connection: Connection, of pool: Pool, after error: any Error
  ) async {
    let failure = error as? PostgresError
    if failure?.kind == .unknownOutcome || failure?.sqlState == "25006" {
      // Either a COMMIT may still be running: close the connection, but never cancel it. Or the server became a
      // standby: only a new connection finds the new primary.
      connection.close(isFailure: failure?.sqlState == "25006")
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

extension Database.Configuration {
  /// The client's time limit for this many statements in one round trip. The server limits each statement separately.
  /// The client's limit is longer, because the server's error says more.
  func timeout(of statements: Int) -> Duration {
    // Multiplying durations is slow, so single reads avoid it.
    (statements > 1 ? statementTimeout * statements : statementTimeout) + .seconds(1)
  }

  fileprivate var connecting: Connecting {
    let session: [(name: String, value: String)] = [
      ("timezone", "UTC"), ("jit", "off"), ("default_transaction_isolation", "read committed"),
      ("statement_timeout", String(statementTimeout.wholeMilliseconds)),
      ("lock_timeout", String(min(lockTimeout, statementTimeout / 2).wholeMilliseconds)),
      ("idle_in_transaction_session_timeout", String(idleInTransactionTimeout.wholeMilliseconds)),
    ]
    return Connecting(
      url: url, applicationName: applicationName, timeout: connectTimeout, session: isBehindPooler ? [] : session)
  }
}

extension Duration {
  var wholeMilliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
