/// One connection shared by many callers, for reads. It is opened on first use, and again when it is lost.
final class SharedConnection: Sendable {
  private struct State {
    var connection: Connection?
    var isOpening = false
    var waiters: WaitingLine<Connection>
    var backoff = Backoff()
    var isShut = false
  }

  private let state: Lock<State>
  private let acquireTimeout: Duration
  private let maximumIdleTime: Duration?
  private let makeConnection: @Sendable () async throws -> Connection

  init(_ configuration: Database.Configuration, open: @escaping @Sendable () async throws -> Connection) {
    state = Lock(State(waiters: configuration.waitingLine))
    acquireTimeout = configuration.acquireTimeout
    maximumIdleTime = configuration.maximumIdleTime
    makeConnection = open
  }

  /// The connection, if callers may take it.
  var openConnection: Connection? {
    state.withLock { $0.connection }.flatMap { $0.isAvailable ? $0 : nil }
  }

  /// Opens the connection for later callers. During the backoff after a failure, callers get its error.
  func openInBackground() {
    let mustOpen = state.withLock { state in !state.backoff.isWaiting && shouldOpen(&state) }
    if mustOpen { openOne() }
  }

  /// - Parameter deadline: the caller's deadline. It applies if it is sooner than the limit for acquiring a connection.
  func connection(for statements: [SQL], by deadline: ContinuousClock.Instant) async throws -> Connection {
    let (taken, mustOpen) = try state.withLock { state -> (Taken, Bool) in
      if let connection = state.connection, connection.isAvailable { return (.open(connection), false) }
      if state.isShut { throw PostgresError(.cannotConnect, "the database is closed") }
      if !state.isOpening { try state.backoff.check() }
      let place = try state.waiters.join(for: statements, until: min(deadline, .now + acquireTimeout))
      return (.promised(place), shouldOpen(&state))
    }
    if mustOpen { openOne() }
    switch taken {
    case .open(let connection): return connection
    case .promised(let place): return try await place.value()
    }
  }

  private enum Taken {
    case open(Connection)
    case promised(WaitingLine<Connection>.Place)
  }

  private func shouldOpen(_ state: inout State) -> Bool {
    guard !state.isOpening, !state.isShut, state.connection?.isAvailable != true else { return false }
    state.connection = nil
    state.isOpening = true
    return true
  }

  private func openOne() {
    Task.detached { [self] in
      let result: Result<Connection, any Error>
      do { result = .success(try await makeConnection()) } catch { result = .failure(error) }
      let (waiters, replaced, isShut) = state.withLock { state -> ([Reply<Connection>], Connection?, Bool) in
        state.isOpening = false
        var replaced: Connection?
        switch result {
        case .success(let connection):
          state.backoff.reset()
          if !state.isShut { (replaced, state.connection) = (state.connection, connection) }
        case .failure(let error):
          state.backoff.note(error)
        }
        return (state.waiters.takeAll(), replaced, state.isShut)
      }
      replaced?.retire()
      if isShut, case .success(let connection) = result { connection.close() }
      for reply in waiters { reply.fulfil(result) }
    }
  }

  /// Fails the waiters whose deadline has passed. Replaces a connection that is too old, and closes one that has been
  /// idle for too long.
  func tick(at now: ContinuousClock.Instant) {
    let (late, idle, mustOpen) = state.withLock { state in
      let late = state.waiters.takeLate(at: now)
      guard let connection = state.connection, connection.isAvailable else { return (late, Connection?.none, false) }
      if let maximumIdleTime, connection.isIdle(for: maximumIdleTime) {
        state.connection = nil
        return (late, connection, false)
      }
      // Callers use the old connection until the new one is open.
      let mustOpen = connection.isTooOld(at: now) && !state.isOpening && !state.isShut && !state.backoff.isWaiting
      if mustOpen { state.isOpening = true }
      return (late, nil, mustOpen)
    }
    late.fail(PostgresError.acquireTimeout)
    idle?.retire()
    if mustOpen { openOne() }
  }

  func close() {
    let (connection, waiters) = state.withLock { state in
      state.isShut = true
      defer { state.connection = nil }
      return (state.connection, state.waiters.takeAll())
    }
    connection?.close()
    waiters.fail(PostgresError(.cannotConnect, "the database was closed"))
  }
}
