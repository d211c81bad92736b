/// A bounded pool of connections, each with one owner at a time. Callers queue in order, with a deadline. Connections
/// are opened on demand, and broken ones are replaced with backoff.
final class Pool: Sendable {
  private struct State {
    /// With the time when each was returned.
    var idle: [(connection: Connection, since: ContinuousClock.Instant)] = []
    /// Connections that are open or being opened, idle or not.
    var total = 0
    var opening = 0
    var waiters: WaitingLine<Connection>
    var backoff = Backoff()
    var isClosed = false
  }

  private let state: Lock<State>
  private let size: Int
  private let acquireTimeout: Duration
  private let maximumIdleTime: Duration?
  private let open: @Sendable () async throws -> Connection

  init(
    _ configuration: Database.Configuration, size: Int, open: @escaping @Sendable () async throws -> Connection
  ) {
    state = Lock(State(waiters: configuration.waitingLine))
    acquireTimeout = configuration.acquireTimeout
    self.size = size
    maximumIdleTime = configuration.maximumIdleTime
    self.open = open
  }

  /// - Parameter statements: the statements that the owner is known to send.
  func acquire(for statements: [SQL]) async throws -> Connection {
    switch try takeIdle(for: statements) {
    case .idle(let connection): return connection
    case .promised(let place): return try await place.value()
    }
  }

  private enum Taken {
    case idle(Connection)
    case promised(WaitingLine<Connection>.Place)
  }

  private func takeIdle(for statements: [SQL]) throws -> Taken {
    var dropped: [Connection] = []
    // Outside this lock, because closing waits for the connection's lock.
    defer { for connection in dropped { connection.close() } }
    let (taken, mustOpen) = try state.withLock { state -> (Taken, Bool) in
      if state.isClosed { throw PostgresError(.cannotConnect, "the database is closed") }
      while let (connection, _) = state.idle.popLast() {
        if connection.isHealthy { return (.idle(connection), false) }
        state.total -= 1
        dropped.append(connection)
      }
      if state.total == 0 { try state.backoff.check() }
      let place = try state.waiters.join(for: statements, until: .now + acquireTimeout)
      return (.promised(place), shouldOpen(&state))
    }
    if mustOpen { openOne() }
    return taken
  }

  /// Returns a connection to the pool. Closes it if it is not ready for its next owner.
  func release(_ connection: Connection) {
    let isFit = connection.isIdle && connection.isHealthy && connection.isAvailable && !connection.isTooOld(at: .now)
    if !isFit { connection.close() }
    let (isKept, mustOpen) = state.withLock { state -> (Bool, Bool) in
      guard isFit, !state.isClosed else {
        state.total -= 1
        return (false, shouldOpen(&state))
      }
      offer(connection, &state)
      return (true, false)
    }
    if !isKept { connection.close() }
    if mustOpen { openOne() }
  }

  func close() {
    let (idle, waiters) = state.withLock { state in
      state.isClosed = true
      defer { state.idle = [] }
      return (state.idle.map(\.connection), state.waiters.takeAll())
    }
    for connection in idle { connection.close() }
    waiters.fail(PostgresError(.cannotConnect, "the database was closed"))
  }

  /// Fails the waiters whose deadline has passed, and retries opening a connection for the others. Closes connections
  /// that are too old or have been idle for too long.
  ///
  /// - Returns: the number of waiting callers and of connections in use.
  func tick(at now: ContinuousClock.Instant) -> (waiting: Int, taken: Int) {
    let (late, stale, mustOpen, load) = state.withLock { state in
      let late = state.waiters.takeLate(at: now)
      let stale = takeStale(&state, at: now)
      return (late, stale, shouldOpen(&state), (state.waiters.count, state.total - state.idle.count))
    }
    late.fail(PostgresError.acquireTimeout)
    for connection in stale { connection.close() }
    if mustOpen { openOne() }
    return load
  }

  private func takeStale(_ state: inout State, at now: ContinuousClock.Instant) -> [Connection] {
    func isStale(_ idle: (connection: Connection, since: ContinuousClock.Instant)) -> Bool {
      idle.connection.isTooOld(at: now) || maximumIdleTime.map { idle.since + $0 < now } ?? false
    }
    guard state.idle.contains(where: isStale) else { return [] }
    let stale = state.idle.filter(isStale).map(\.connection)
    state.idle.removeAll(where: isStale)
    state.total -= stale.count
    return stale
  }

  private func shouldOpen(_ state: inout State) -> Bool {
    guard !state.isClosed, state.total < size, state.opening < state.waiters.count, !state.backoff.isWaiting
    else { return false }
    state.total += 1
    state.opening += 1
    return true
  }

  private func openOne() {
    Task.detached { [self] in
      do {
        let connection = try await open()
        let isKept = state.withLock { state -> Bool in
          state.opening -= 1
          state.backoff.reset()
          if state.isClosed { return false }
          offer(connection, &state)
          return true
        }
        if !isKept { connection.close() }
      } catch {
        let failed = state.withLock { state -> [Reply<Connection>] in
          state.opening -= 1
          state.total -= 1
          state.backoff.note(error)
          // If others are open, one of them may still become free in time.
          guard state.total == 0 else { return [] }
          return state.waiters.takeAll()
        }
        failed.fail(error)
      }
    }
  }

  private func offer(_ connection: Connection, _ state: inout State) {
    if !state.waiters.serve(connection) { state.idle.append((connection, .now)) }
  }
}

extension Database.Configuration {
  /// A line of callers that wait for a connection.
  var waitingLine: WaitingLine<Connection> {
    WaitingLine(maximumCount: maximumWaiting, maximumSize: maximumWaitingBytes)
  }
}

extension WaitingLine<Connection> {
  mutating func join(for statements: [SQL], until deadline: ContinuousClock.Instant) throws -> Place {
    do {
      return try join(size: statements.parameterBytes, until: deadline)
    } catch let full as IsFull {
      throw PostgresError(.overloaded, "\(full.count) callers are already waiting for a connection")
    }
  }
}

extension PostgresError {
  static let acquireTimeout = PostgresError(.timeout, "no connection became free in time")
}
