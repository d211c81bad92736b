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
      lanesAndPool.withLock { $0?.pool }?.expire(at: now)
    }
    var connecting = Connecting(
      url: configuration.url, applicationName: configuration.applicationName, timeout: configuration.connectTimeout)
    connecting.session = [
      ("timezone", "UTC"), ("jit", "off"), ("statement_timeout", configuration.statementTimeout.milliseconds),
      ("idle_in_transaction_session_timeout", configuration.idleInTransactionTimeout.milliseconds),
    ]
    let forTransactions = connecting
    connecting.session.append(("default_transaction_read_only", "on"))
    let forReads = connecting
    let lanes = (0..<configuration.lanes).map { _ in Lane { try await forReads.open(reactor: reactor) } }
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
    do {
      return try await sendOnce(statements)
    } catch let error as PostgresError where error.kind == .connectionLost || error.endsConnection {
      // Nothing can have been changed, so asking again is safe.
      return try await sendOnce(statements)
    }
  }

  private func sendOnce(_ statements: [SQL]) async throws -> [Rows] {
    guard let lane = lanes.min(by: { $0.depth < $1.depth }) else {
      throw PostgresError(.misuse, "this database was configured without lanes for reads")
    }
    let connection = try await lane.connection()
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
    try await transaction { try await $0.rows(sql) }
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
    guard !Transaction.isCurrent else {
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
    let transaction = Transaction(connection, timeout: configuration.batchTimeout)
    do {
      let value = try await Transaction.$isCurrent.withValue(true) { try await body(transaction) }
      try await transaction.commit()
      pool.release(connection)
      return value
    } catch {
      if let error = error as? PostgresError, error.kind == .unknownOutcome {
        // A COMMIT may still be under way: hung up on, but never cancelled.
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
