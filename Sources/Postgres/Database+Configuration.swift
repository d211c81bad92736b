import Logging

extension Database {
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
    /// The time limit for each host of the URL, unless the URL has a `connect_timeout` of at least one second. Hosts
    /// are tried one by one, starting with the last one that responded, or in random order if the URL has
    /// `load_balance_hosts=random`.
    public var connectTimeout = Duration.seconds(2)
    /// The time limit for acquiring a connection.
    public var acquireTimeout = Duration.seconds(5)
    /// The time limit for each statement, enforced by the server. The client stops waiting one second later: for n
    /// statements sent together, after n times this limit and one second. This bounds a read as a whole, including all
    /// its retries.
    public var statementTimeout = Duration.seconds(10)
    /// The same limit for statements on ``Database/slow``.
    public var slowStatementTimeout = Duration.seconds(10)
    /// The time limit for each lock that a statement waits for, enforced by the server: SQLSTATE 55P03, see
    /// ``PostgresError/isLockTimeout``. It is capped at half of ``statementTimeout``, so that a wait for a lock is
    /// reported as such and not as a slow statement.
    public var lockTimeout = Duration.seconds(5)
    /// The server ends a session that leaves its transaction idle for this long.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// A connection that has been idle for this long is closed; nil for no limit.
    public var maximumIdleTime: Duration? = .seconds(600)
    /// A connection of this age is replaced once its statement or transaction has ended; nil for no limit. The actual
    /// age is up to a tenth less, at random, so that connections are not all replaced at once.
    public var maximumLifetime: Duration? = .seconds(3600)
    /// The maximum number of waiting callers, for each shared connection and for the pool. Further callers are rejected
    /// with `overloaded`.
    public var maximumWaiting = 1024
    /// The limit on the parameter bytes of all waiting callers, for each shared connection and for the pool. Once it is
    /// reached, further callers are rejected with `overloaded`. Statements sent by a transaction's body do not count,
    /// because they are unknown before it runs.
    public var maximumWaitingBytes = 64 << 20
    /// Set this if connections go through PgBouncer or another pooler in transaction mode. The client then relies on no
    /// session state: no prepared statements, no settings (give the role its `statement_timeout`, `lock_timeout`
    /// and `idle_in_transaction_session_timeout`), no protection against writes among reads, so that no read is sent
    /// again after its connection broke, and no LISTEN.
    public var isBehindPooler = false
    /// Set this for an engine that speaks PostgreSQL's protocol but lacks some of its features. The client then sends no
    /// LISTEN or NOTIFY, and makes transactions serializable. Migrations still take an advisory lock.
    /// Callers that take others ask ``Transaction/isPortable`` first.
    public var isPortable = false
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
      (try? ConnectionString(url)) != nil
    }
  }
}

extension Database.Configuration {
  /// The client's time limit for this many statements in one round trip. The server limits each statement separately.
  /// The client's limit is longer, because the server's error says more.
  ///
  /// - Parameter limit: the server's limit for each; nil for ``statementTimeout``.
  func timeout(of statements: Int, each limit: Duration? = nil) -> Duration {
    let limit = limit ?? statementTimeout
    // Multiplying durations is slow, so single reads avoid it.
    return (statements > 1 ? limit * statements : limit) + .seconds(1)
  }

  /// How often a transaction runs that loses against others. Where all are serializable, each that ends makes all others
  /// lose that have read or written the same row.
  var maximumAttempts: Int { isPortable ? 20 : 5 }

  var connecting: Connecting {
    Connecting(url: url, applicationName: applicationName, timeout: connectTimeout) { [self] in
      isBehindPooler ? [] : session($0)
    }
  }

  private func session(_ purpose: Connecting.Purpose) -> [(name: String, value: String)] {
    let limit = purpose == .slow ? slowStatementTimeout : statementTimeout
    var settings: [(name: String, value: String)] = [
      ("timezone", "UTC"),
      // Starting parallel workers, or compiling a plan, takes longer than almost every statement.
      ("max_parallel_workers_per_gather", "0"), ("jit", "off"),
      ("statement_timeout", String(limit.wholeMilliseconds)),
      ("lock_timeout", String(min(lockTimeout, limit / 2).wholeMilliseconds)),
      ("idle_in_transaction_session_timeout", String(idleInTransactionTimeout.wholeMilliseconds)),
    ]
    // With a snapshot of its own, a transaction that waits for a lock may not see what the holder wrote elsewhere.
    settings.append((name: "default_transaction_isolation", value: isPortable ? "serializable" : "read committed"))
    if purpose != .exclusive { settings.append((name: "default_transaction_read_only", value: "on")) }
    // A bitmap of many rows that does not fit has pages only, and each row on them is checked again.
    if purpose == .slow { settings.append((name: "work_mem", value: "64MB")) }
    return settings
  }
}

extension Duration {
  var wholeMilliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
