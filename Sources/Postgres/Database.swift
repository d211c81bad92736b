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
  public struct Configuration: Sendable {
    /// A libpq URI or `key=value` string. Several hosts are tried in order.
    public var url: String
    /// What `pg_stat_activity` shows.
    public var applicationName = "swift"
    /// Connections that single reads share.
    public var lanes = 2
    /// Connections for transactions, at most. Commits that wait together share one flush of the log.
    public var connections = 16
    /// For each host of the URL.
    public var connectTimeout = Duration.seconds(5)
    /// For a connection to become free.
    public var waitTimeout = Duration.seconds(5)
    /// For one batch of statements: enforced by the server and, a second later, by this client.
    public var statementTimeout = Duration.seconds(10)
    /// After which the server ends a session that left its transaction open.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// Callers waiting, for each lane and for the pool; beyond it they are turned away with `overloaded`.
    public var maximumWaiting = 1024

    public init(url: String) {
      self.url = url
    }

    /// Whether libpq understands the URL. Says nothing of whether there is a server.
    public var isWellFormed: Bool {
      (try? Connecting(url: url, applicationName: applicationName, timeout: connectTimeout).parse()) != nil
    }
  }

  private let configuration: Configuration
  private let reactor: Reactor
  private let lanes: [Lane]
  private let pool: Pool

  /// Opens no connection yet; the first statement does.
  public init(_ configuration: Configuration) throws {
    self.configuration = configuration
    let lanesAndPool = Mutex<(lanes: [Lane], pool: Pool)?>(nil)
    let reactor = try Reactor { now in
      guard let (lanes, pool) = lanesAndPool.withLock({ $0 }) else { return }
      for lane in lanes { lane.expire(at: now) }
      pool.tick(at: now)
    }
    var connecting = Connecting(
      url: configuration.url, applicationName: configuration.applicationName, timeout: configuration.connectTimeout)
    connecting.session = [
      ("timezone", "UTC"), ("jit", "off"), ("default_transaction_isolation", "read committed"),
      ("statement_timeout", configuration.statementTimeout.milliseconds),
      ("idle_in_transaction_session_timeout", configuration.idleInTransactionTimeout.milliseconds),
    ]
    let forTransactions = connecting
    connecting.isShared = true
    let forReads = connecting
    let lanes = (0..<configuration.lanes).map { _ in
      Lane(waitTimeout: configuration.waitTimeout, maximumWaiting: configuration.maximumWaiting) {
        try await forReads.open(reactor: reactor)
      }
    }
    let pool = Pool(
      size: configuration.connections, waitTimeout: configuration.waitTimeout,
      maximumWaiting: configuration.maximumWaiting
    ) { try await forTransactions.open(reactor: reactor) }
    lanesAndPool.withLock { $0 = (lanes, pool) }
    self.reactor = reactor
    self.lanes = lanes
    self.pool = pool
  }

  /// Ends all connections. Statements under way fail; the database cannot be used afterwards.
  public func close() {
    for lane in lanes { lane.close() }
    pool.close()
    reactor.stop()
  }

  /// Runs statements that only read, in one round trip. Each sees a snapshot of its own.
  ///
  /// - Throws: ``PostgresError``; a statement that writes fails with SQLSTATE 25006.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    // Nothing can have been changed, so asking again is safe. All lanes may have broken at the same time.
    let deadline = ContinuousClock.now + configuration.batchTimeout
    for _ in lanes {
      do {
        return try await sendOnce(statements)
      } catch let error as PostgresError where error.isWorthAskingAgain && .now < deadline {
        continue
      }
    }
    return try await sendOnce(statements)
  }

  private func sendOnce(_ statements: [SQL]) async throws -> [Rows] {
    guard let first = lanes.first else {
      throw PostgresError(.misuse, "this database was configured without lanes for reads")
    }
    let open = lanes.compactMap(\.openConnection)
    let idlest = open.min { $0.depth.load(ordering: .relaxed) < $1.depth.load(ordering: .relaxed) }
    // A lane that is not open is opened when the others are busy, but nobody waits for it who need not.
    if let idlest, open.count < lanes.count, idlest.depth.load(ordering: .relaxed) > 0 {
      for lane in lanes { lane.openInBackground() }
    }
    let connection = if let idlest { idlest } else { try await first.connection() }
    guard connection.depth.load(ordering: .relaxed) < configuration.maximumWaiting else {
      throw PostgresError(.overloaded, "too many statements are under way")
    }
    return try await connection.submit(statements, timeout: configuration.batchTimeout).value()
  }

  /// Runs one statement that writes, committed when it returns.
  ///
  /// - Throws: ``PostgresError``; `mayHaveRun` tells whether it may have taken effect all the same.
  @discardableResult
  public func execute(_ sql: SQL) async throws -> Rows {
    try await transaction(repeating: true) { try await $0.rows(sql) }
  }

  /// Runs `body` in a transaction on a connection of its own and commits when it returns; any error rolls back.
  ///
  /// BEGIN travels with the first statement, and statements given to ``Transaction/atCommit(_:)`` travel with COMMIT.
  /// COMMIT is never cancelled, and its answer is checked.
  ///
  /// - Parameter repeating: the body may be run again from the start, up to 5 times, when the server chose it as the
  ///   victim of a deadlock or of a serialization failure.
  /// - Throws: the body's error, or ``PostgresError``. Kind `unknownOutcome`: the connection broke during COMMIT.
  ///   Kind `misuse`: called inside another transaction's body, which would need two connections and deadlock the pool.
  public func transaction<Value: Sendable>(
    repeating: Bool = false, _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    if let current = Transaction.current, current.database == ObjectIdentifier(self), !current.isEnded {
      throw PostgresError(.misuse, "a transaction cannot be begun inside another's body")
    }
    var attempt = 1
    while true {
      do {
        return try await transactionOnce(body)
      } catch let error as PostgresError where repeating && error.isWorthRepeating && attempt < 5 {
        try await Task.sleep(for: .milliseconds(5 * attempt) * Double.random(in: 0.5...1.5))
        attempt += 1
      }
    }
  }

  private func transactionOnce<Value: Sendable>(
    _ body: (Transaction) async throws -> Value
  ) async throws -> Value {
    let connection = try await pool.acquire()
    let transaction = Transaction(connection, of: self, timeout: configuration.batchTimeout)
    do {
      let value = try await Transaction.$current.withValue(transaction) { try await body(transaction) }
      try await transaction.commit()
      pool.release(connection)
      return value
    } catch {
      if let error = error as? PostgresError, error.kind == .unknownOutcome {
        // A COMMIT may still be under way: hung up on, but never cancelled.
        connection.close()
        pool.release(connection)
      } else if let error = error as? PostgresError, error.sqlState == "25006" {
        // The server became a standby: whoever takes its place is found by connecting anew.
        connection.close()
        pool.release(connection)
      } else if connection.depth.load(ordering: .relaxed) > 0 {
        // The caller gave up on a statement that the server is still busy with. Whoever gave up does not wait.
        Task.detached { [pool] in
          await transaction.abandon()
          pool.release(connection)
        }
      } else {
        await transaction.rollback()
        pool.release(connection)
      }
      throw error
    }
  }
}

extension Database.Configuration {
  /// The client's own deadline lies behind the server's, whose error says more.
  var batchTimeout: Duration { statementTimeout + .seconds(1) }
}

extension Duration {
  /// As PostgreSQL's settings take it.
  var milliseconds: String {
    String(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
  }
}
