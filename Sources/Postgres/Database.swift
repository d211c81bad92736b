import Logging
import Synchronization

/// A PostgreSQL database: what an application holds, one for its whole life.
///
/// - Reads, one statement each, of any number of tasks: ``send(_:)`` and what ``Querying`` makes of it. They share a few
///   connections in pipeline mode, which are read-only sessions: a statement there has no effect, and is repeated once
///   elsewhere when its connection breaks.
/// - Everything that writes: ``transaction(repeating:_:)`` or ``execute(_:)``, on a connection of its own from a pool.
///
/// Every wait has a deadline. Cancelling the calling task ends its wait at once.
public final class Database: Querying {
  /// Where the server is, how many connections there may be, and how long everything may take.
  public struct Configuration: Sendable {
    /// A libpq URI or `key=value` string. Several hosts are tried in order, for one that takes writes unless
    /// `target_session_attrs` says otherwise.
    public var url: String
    /// What `pg_stat_activity` shows.
    public var applicationName = "swift"
    /// Connections that single reads share.
    public var sharedConnections = 2
    /// Connections for transactions, at most. Commits that wait together share one flush of the log.
    public var connections = 16
    /// For each host of the URL, which are tried one by one, beginning with the one that answered last.
    public var connectTimeout = Duration.seconds(2)
    /// For a connection to become free.
    public var waitTimeout = Duration.seconds(5)
    /// For each statement, enforced by the server. This client gives up on an answer a second later: for statements
    /// that travel together, as many times this and a second. That bounds a read as a whole, however often it is
    /// repeated.
    public var statementTimeout = Duration.seconds(10)
    /// For each lock that a statement waits for, enforced by the server: SQLSTATE 55P03, see
    /// ``PostgresError/isLockTimeout``. At most half of ``statementTimeout`` counts, so that a wait for a lock ends as
    /// one, and not as a statement that took too long.
    public var lockTimeout = Duration.seconds(5)
    /// After which the server ends a session that left its transaction open.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// Callers waiting, for each shared connection and for the pool; beyond it they are turned away with `overloaded`.
    public var maximumWaiting = 1024
    /// Bytes of the parameters of those who wait, for each shared connection and for the pool: while there are so many, further
    /// callers are turned away with `overloaded`. What a transaction's body will send is not known before it runs.
    public var maximumWaitingBytes = 64 << 20
    /// PgBouncer, or another pooler in transaction mode, stands between. Nothing of a session is relied upon then: no
    /// prepared statements, no settings (give the role its `statement_timeout`, `lock_timeout`
    /// and `idle_in_transaction_session_timeout`), no guard against writes among reads, and no LISTEN.
    public var isBehindPooler = false
    /// Hears of slow statements, without their parameters.
    public var logger = Logger(label: "postgres")
    /// Above it a batch of statements is logged.
    public var slowStatement = Duration.seconds(1)

    /// - Parameter url: see ``url``. Nothing is checked yet.
    public init(url: String) {
      self.url = url
    }

    /// Whether libpq understands the URL. Says nothing of whether there is a server.
    public var isWellFormed: Bool {
      (try? Connecting.parse(url)) != nil
    }
  }

  let configuration: Configuration
  /// Channels of which a hint was sent in the last moments, and whether another is wanted: see ``notify(_:)``.
  let hints = Lock<[String: Bool]>([:])
  private let observer: Observer
  private let connecting: Connecting
  private let reactor: Reactor
  private let sharedConnections: [SharedConnection]
  private let pool: Pool
  /// Of its own, so that no number of slow reads keeps writes waiting.
  private let slowPool: Pool
  private let closed = Atomic(false)

  /// Opens no connection yet; the first statement does.
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
    // Behind a pooler, a session's names are other callers' names.
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

  /// A connection of its own that hears what is sent to channels.
  func openListener(_ hear: @escaping @Sendable (ListenerEvent?) -> Void) async throws -> Connection {
    try await connecting.open(.exclusive) { [observer, reactor] in
      try Connection($0, for: .exclusive, naming: .never, observer: observer, reactor: reactor, hear: hear)
    }
  }

  /// Ends all connections. Statements under way fail, and sequences of notifications end; the database cannot be used
  /// afterwards.
  public func close() {
    closed.store(true, ordering: .relaxed)
    for shared in sharedConnections { shared.close() }
    pool.close()
    slowPool.close()
    reactor.stop()
  }

  /// Runs statements that only read, in one round trip. Each sees a snapshot of its own.
  ///
  /// - Throws: ``PostgresError``; a statement that writes fails with SQLSTATE 25006.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    // Nothing can have been changed, so asking again is safe. All shared connections may have broken at the same time.
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
      // Full of large statements, it is the last choice.
      if open.bytes.load(ordering: .relaxed) >= configuration.maximumWaitingBytes { openDepth = .max - 1 }
      if openDepth < depth { (idlest, depth) = (open, openDepth) }
    }
    // A shared connection that is not open is opened when the others are busy, but nobody waits for it who need not.
    if idlest != nil, !isAllOpen, depth > 0 {
      for shared in sharedConnections { shared.openInBackground() }
    }
    let connection = if let idlest { idlest } else { try await first.connection(for: statements, by: deadline) }
    guard connection.depth.load(ordering: .relaxed) < configuration.maximumWaiting,
      connection.bytes.load(ordering: .relaxed) < configuration.maximumWaitingBytes
    else { throw PostgresError(.overloaded, "too many statements are under way") }
    return try await connection.submit(statements, timeout: timeout, by: deadline).value()
  }

  /// Reads that take long: each batch has a connection of its own, so that it holds up no shared connection of short ones. Besides
  /// those for transactions there are a quarter as many for these; more of them wait.
  public var slow: SlowReads { SlowReads(database: self) }

  /// Runs one statement that writes, committed when it returns. Cancelling the task stops it unless COMMIT was sent.
  ///
  /// - Throws: ``PostgresError``; `mayHaveRun` tells whether it may have taken effect all the same.
  @discardableResult
  public func execute(_ sql: SQL) async throws -> Rows {
    try await repeated(true, on: pool, for: [sql]) { try await $0.rows(sql) }.value
  }

  /// Runs statements that are known beforehand as one transaction, in one round trip: a single one, too, is committed
  /// sooner than by ``execute(_:)``.
  ///
  /// Repeated when it lost against another transaction. As COMMIT is on its way with them, it is not cancelled with the
  /// task, and ends by its deadline at the latest.
  @discardableResult
  public func batch(_ statements: SQL...) async throws -> [Rows] {
    try await repeated(true, on: pool, for: statements) { $0.atCommit(statements) }.last
  }

  /// Runs `body` in a transaction on a connection of its own and commits when it returns; any error rolls back.
  ///
  /// BEGIN travels with the first statement, and statements given to ``Transaction/atCommit(_:)`` travel with COMMIT.
  /// COMMIT is never cancelled, and its answer is checked.
  ///
  /// - Parameters:
  ///   - repeating: the body may be run again from the start, up to 5 times, when the server chose it as the victim of a
  ///     deadlock or of a serialization failure.
  ///   - isConflict: further errors that `repeating` applies to.
  /// - Throws: the body's error, or ``PostgresError``. Kind `unknownOutcome`: the connection broke during COMMIT.
  ///   Kind `misuse`: called inside another transaction's body, which would need two connections and deadlock the pool.
  public func transaction<Value: Sendable>(
    repeating: Bool = false, orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    try await repeated(repeating, orAfter: isConflict, on: pool, body).value
  }

  /// The same for a body that ends with a look at what it has done, in the round trip of COMMIT.
  ///
  /// - Returns: what the body returned, and what the statements that it gave to ``Transaction/atCommit(_:)`` have
  ///   answered, in their order.
  public func transactionWithAnswers<Value: Sendable>(
    repeating: Bool = false, orAfter isConflict: (PostgresError) -> Bool = { _ in false },
    _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, answers: [Rows]) {
    let (value, answers) = try await repeated(repeating, orAfter: isConflict, on: pool, body)
    return (value, answers)
  }

  func readSlowly(_ statements: [SQL]) async throws -> [Rows] {
    try await repeated(true, on: slowPool, for: statements) { try await $0.send(statements) }.value
  }

  /// Runs one statement that is a transaction by itself, beside the reads that take long.
  func runAlone(_ statement: SQL) async throws {
    let connection = try await slowPool.acquire(for: [statement])
    defer { slowPool.release(connection) }
    _ = try await connection.submit([statement], timeout: configuration.timeout(of: 1)).value()
  }

  /// - Parameter statements: what the body is known to send.
  private func repeated<Value: Sendable>(
    _ isRepeatable: Bool, orAfter isConflict: (PostgresError) -> Bool = { _ in false }, on pool: Pool,
    for statements: [SQL] = [], _ body: (Transaction) async throws -> Value
  ) async throws -> (value: Value, last: [Rows]) {
    if let current = Transaction.current, current.database === self, !current.isEnded {
      throw PostgresError(.misuse, "a transaction cannot be begun inside another's body")
    }
    var attempt = 1
    while true {
      do {
        return try await once(on: pool, for: statements, body)
      } catch let error as PostgresError
        where isRepeatable && (error.isWorthRepeating || isConflict(error)) && attempt < 5
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
      // A COMMIT may still be under way: hung up on, but never cancelled. Or the server became a standby: whoever takes
      // its place is found by connecting anew.
      connection.close(isFailure: failure?.sqlState == "25006")
      pool.release(connection)
    } else if connection.depth.load(ordering: .relaxed) > 0 {
      // The caller gave up on a statement that the server is still busy with. Whoever gave up does not wait.
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
  /// For so many statements in one round trip: the server counts each by itself. The client's own deadline lies behind
  /// the server's, whose error says more.
  func timeout(of statements: Int) -> Duration {
    // Multiplied only where it must be, which is slow for every single read.
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
