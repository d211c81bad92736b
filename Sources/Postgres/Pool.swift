import DequeModule

/// Callers who wait for a connection, in order: each with a deadline, and only so many, with so many bytes of parameters.
private struct Queue {
  private struct Waiter {
    let reply: Reply<Connection>
    let bytes: Int
    let deadline: ContinuousClock.Instant
  }

  private var waiters: Deque<Waiter> = []
  private var bytes = 0
  private let timeout: Duration
  private let maximumCount: Int
  private let maximumBytes: Int

  init(_ configuration: Database.Configuration) {
    timeout = configuration.waitTimeout
    maximumCount = configuration.maximumWaiting
    maximumBytes = configuration.maximumWaitingBytes
  }

  var count: Int { waiters.count }

  private var isFull: Bool { count >= maximumCount || bytes >= maximumBytes }

  /// Lets a caller in, unless too many wait already. Those who gave up do not count.
  mutating func add(
    _ reply: Reply<Connection>, for statements: [SQL], by deadline: ContinuousClock.Instant? = nil
  ) throws {
    if isFull { remove { $0.reply.isDone } }
    guard !isFull else { throw PostgresError(.overloaded, "\(count) callers wait for a connection already") }
    let latest = ContinuousClock.now + timeout
    let waiter = Waiter(reply: reply, bytes: statements.parameterBytes, deadline: min(deadline ?? latest, latest))
    waiters.append(waiter)
    bytes += waiter.bytes
  }

  mutating func popFirst() -> Reply<Connection>? {
    guard let waiter = waiters.popFirst() else { return nil }
    bytes -= waiter.bytes
    return waiter.reply
  }

  /// Takes out those whose time is up.
  mutating func takeLate(at now: ContinuousClock.Instant) -> [Reply<Connection>] {
    // Nothing to do, nearly always; and ThreadSanitizer minds that an empty array made of a deque touches the one that
    // all empty arrays share.
    guard waiters.contains(where: { $0.deadline < now }) else { return [] }
    defer { remove { $0.deadline < now } }
    return waiters.filter { $0.deadline < now }.map(\.reply)
  }

  mutating func takeAll() -> [Reply<Connection>] {
    guard count > 0 else { return [] }
    defer { remove { _ in true } }
    return waiters.map(\.reply)
  }

  private mutating func remove(where condition: (Waiter) -> Bool) {
    waiters.removeAll(where: condition)
    bytes = waiters.reduce(0) { $0 + $1.bytes }
  }
}

extension [Reply<Connection>] {
  fileprivate func fail(_ error: any Error) {
    for reply in self { reply.fulfil(.failure(error)) }
  }
}

private let waitedTooLong = PostgresError(.timeout, "no connection became free in time")

/// The bounded set of connections of which each has one owner at a time. Callers queue in order, with a deadline;
/// connections are opened when they are wanted, and broken ones replaced with backoff.
final class Pool: Sendable {
  private struct State {
    var idle: [Connection] = []
    /// Open or being opened, idle or not.
    var total = 0
    var opening = 0
    var waiters: Queue
    var backoff = Backoff()
    var isClosed = false
  }

  private let state: Lock<State>
  private let size: Int
  private let open: @Sendable () async throws -> Connection

  init(
    _ configuration: Database.Configuration, size: Int, open: @escaping @Sendable () async throws -> Connection
  ) {
    state = Lock(State(waiters: Queue(configuration)))
    self.size = size
    self.open = open
  }

  /// - Parameter statements: what its owner is known to send.
  func acquire(for statements: [SQL]) async throws -> Connection {
    let reply = Reply<Connection>()
    return if let idle = try takeIdle(orPromise: reply, for: statements) { idle } else { try await reply.value() }
  }

  /// - Returns: nil if the reply will bring a connection.
  private func takeIdle(orPromise reply: Reply<Connection>, for statements: [SQL]) throws -> Connection? {
    var dropped: [Connection] = []
    // Not under this lock: closing waits for the connection's own.
    defer { for connection in dropped { connection.close() } }
    let (idle, mustOpen) = try state.withLock { state -> (Connection?, Bool) in
      if state.isClosed { throw PostgresError(.cannotConnect, "the database is closed") }
      while let connection = state.idle.popLast() {
        if connection.isTrusted { return (connection, false) }
        state.total -= 1
        dropped.append(connection)
      }
      if state.total == 0 { try state.backoff.check() }
      try state.waiters.add(reply, for: statements)
      return (nil, shouldOpen(&state))
    }
    if mustOpen { openOne() }
    return idle
  }

  /// Gives a connection back. One that is not fit for the next owner is closed.
  func release(_ connection: Connection) {
    let isFit = connection.isIdle && connection.isTrusted
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
      return (state.idle, state.waiters.takeAll())
    }
    for connection in idle { connection.close() }
    waiters.fail(PostgresError(.cannotConnect, "the database was closed"))
  }

  /// Turns away the waiters whose time is up, and tries again to open a connection for the others.
  ///
  /// - Returns: how many callers wait, and how many connections are taken.
  func tick(at now: ContinuousClock.Instant) -> (waiting: Int, taken: Int) {
    let (late, mustOpen, load) = state.withLock { state in
      let late = state.waiters.takeLate(at: now)
      return (late, shouldOpen(&state), (state.waiters.count, state.total - state.idle.count))
    }
    late.fail(waitedTooLong)
    if mustOpen { openOne() }
    return load
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
          // While others are open, one of them may still become free in time.
          guard state.total == 0 else { return [] }
          return state.waiters.takeAll()
        }
        failed.fail(error)
      }
    }
  }

  private func offer(_ connection: Connection, _ state: inout State) {
    while let reply = state.waiters.popFirst() {
      // False if that caller gave up.
      if reply.fulfil(.success(connection)) { return }
    }
    state.idle.append(connection)
  }
}

/// After a failed attempt to connect: for how long others get the same answer without an attempt of their own.
struct Backoff {
  private var until: ContinuousClock.Instant?
  private(set) var delay = Duration.milliseconds(50)
  private var failure: (any Error)?

  var isWaiting: Bool {
    until.map { ContinuousClock.now < $0 } ?? false
  }

  /// - Throws: the last failure, while it is too early to try again.
  func check() throws {
    if let until, let failure, ContinuousClock.now < until { throw failure }
  }

  /// Attempts that fail together count once.
  mutating func note(_ error: any Error) {
    failure = error
    guard !isWaiting else { return }
    until = .now + delay * Double.random(in: 0.8...1.2)
    delay = min(delay * 2, .seconds(1))
  }

  mutating func reset() {
    self = Backoff()
  }
}

/// One connection shared by many callers, each with single statements. Opened when first wanted and again after a loss.
final class Lane: Sendable {
  private struct State {
    var connection: Connection?
    var isOpening = false
    var waiters: Queue
    var backoff = Backoff()
    var isShut = false
  }

  private let state: Lock<State>
  private let makeConnection: @Sendable () async throws -> Connection

  init(_ configuration: Database.Configuration, open: @escaping @Sendable () async throws -> Connection) {
    state = Lock(State(waiters: Queue(configuration)))
    makeConnection = open
  }

  /// The connection, if there is one now.
  var openConnection: Connection? {
    state.withLock { $0.connection }.flatMap { $0.isOpen ? $0 : nil }
  }

  /// Opens the lane for others to use later. A failure is kept for those who ask within the backoff.
  func openInBackground() {
    let mustOpen = state.withLock { state in !state.backoff.isWaiting && shouldOpen(&state) }
    if mustOpen { openOne() }
  }

  /// - Parameter deadline: of the caller, if it is sooner than the end of the wait for a connection.
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

  /// Turns away the waiters whose time is up.
  func expire(at now: ContinuousClock.Instant) {
    state.withLock { $0.waiters.takeLate(at: now) }.fail(waitedTooLong)
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
