/// One connection shared by many callers, for reads. It is opened on first use, and again when it is lost.
final class SharedConnection: Sendable {
  private struct State {
    var connection: Connection?
    var isOpening = false
    var waiters: WaitingCallers
    var backoff = Backoff()
    var isShut = false
  }

  private let state: Lock<State>
  private let makeConnection: @Sendable () async throws -> Connection

  init(_ configuration: Database.Configuration, open: @escaping @Sendable () async throws -> Connection) {
    state = Lock(State(waiters: WaitingCallers(configuration)))
    makeConnection = open
  }

  /// The connection, if it is open.
  var openConnection: Connection? {
    state.withLock { $0.connection }.flatMap { $0.isOpen ? $0 : nil }
  }

  /// Opens the connection for later callers. During the backoff after a failure, callers get its error.
  func openInBackground() {
    let mustOpen = state.withLock { state in !state.backoff.isWaiting && shouldOpen(&state) }
    if mustOpen { openOne() }
  }

  /// - Parameter deadline: the caller's deadline. It applies if it is sooner than the limit for acquiring a connection.
  func connection(for statements: [SQL], by deadline: ContinuousClock.Instant) async throws -> Connection {
    let reply = Reply<Connection>()
    let (ready, mustOpen) = try state.withLock { state -> (Connection?, Bool) in
      if let connection = state.connection, connection.isOpen { return (connection, false) }
      if state.isShut { throw PostgresError(.cannotConnect, "the database is closed") }
      if !state.isOpening { try state.backoff.check() }
      try state.waiters.add(reply, for: statements, by: deadline)
      return (nil, shouldOpen(&state))
    }
    if let ready { return ready }
    if mustOpen { openOne() }
    return try await reply.value()
  }

  private func shouldOpen(_ state: inout State) -> Bool {
    guard !state.isOpening, !state.isShut, state.connection?.isOpen != true else { return false }
    state.connection = nil
    state.isOpening = true
    return true
  }

  private func openOne() {
    Task.detached { [self] in
      let result: Result<Connection, any Error>
      do { result = .success(try await makeConnection()) } catch { result = .failure(error) }
      let (waiters, isShut) = state.withLock { state in
        state.isOpening = false
        switch result {
        case .success(let connection):
          state.backoff.reset()
          if !state.isShut { state.connection = connection }
        case .failure(let error):
          state.backoff.note(error)
        }
        return (state.waiters.takeAll(), state.isShut)
      }
      if isShut, case .success(let connection) = result { connection.close() }
      for reply in waiters { reply.fulfil(result) }
    }
  }

  /// Fails the waiters whose deadline has passed.
  func expire(at now: ContinuousClock.Instant) {
    state.withLock { $0.waiters.takeLate(at: now) }.fail(PostgresError.acquireTimeout)
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
