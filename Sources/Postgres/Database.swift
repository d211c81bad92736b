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
  /// Channels that were sent a hint within the last 50 ms, and whether another is due: see ``notify(_:)``.
  let hints = Lock<[String: Bool]>([:])
  let observer: Observer
  private let connecting: Connecting
  /// Its thread keeps it alive until ``close()``.
  let reactor: Reactor
  let sharedConnections: [SharedConnection]
  let pool: Pool
  /// A separate pool, so that slow reads never delay writes.
  let slowPool: Pool
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
