import DequeModule

/// A caller in a queue for a connection.
private struct Waiter {
  let reply: Reply<Connection>
  let deadline: ContinuousClock.Instant
}

extension Deque<Waiter> {
  /// Lets a caller in, unless so many wait already. Those who gave up do not count.
  fileprivate mutating func add(_ reply: Reply<Connection>, timeout: Duration, atMost limit: Int) throws {
    if count >= limit { removeAll { $0.reply.isDone } }
    guard count < limit else { throw PostgresError(.overloaded, "\(count) callers wait for a connection already") }
    append(Waiter(reply: reply, deadline: .now + timeout))
  }

  /// Takes out those whose time is up.
  fileprivate mutating func removeLate(at now: ContinuousClock.Instant) -> [Waiter] {
    // Nothing to do, nearly always; and ThreadSanitizer minds that an empty array made of a deque touches the one that
    // all empty arrays share.
    guard contains(where: { $0.deadline < now }) else { return [] }
    defer { removeAll { $0.deadline < now } }
    return filter { $0.deadline < now }
  }
}

extension Sequence<Waiter> {
  fileprivate func fail(_ error: any Error) {
    for waiter in self { waiter.reply.fulfil(.failure(error)) }
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
    var waiters: Deque<Waiter> = []
    var backoff = Backoff()
    var isClosed = false
  }

  private let state = Lock(State())
  private let size: Int
  private let waitTimeout: Duration
  private let maximumWaiting: Int
  private let open: @Sendable () async throws -> Connection

  init(
    size: Int, waitTimeout: Duration, maximumWaiting: Int, open: @escaping @Sendable () async throws -> Connection
  ) {
    self.size = size
    self.waitTimeout = waitTimeout
    self.maximumWaiting = maximumWaiting
    self.open = open
  }

  func acquire() async throws -> Connection {
    let reply = Reply<Connection>()
    let (ready, mustOpen) = try state.withLock { state -> (Connection?, Bool) in
      if state.isClosed { throw PostgresError(.cannotConnect, "the database is closed") }
      while let connection = state.idle.popLast() {
        if connection.isOpen { return (connection, false) }
        state.total -= 1
      }
      if state.total == 0 { try state.backoff.check() }
      try state.waiters.add(reply, timeout: waitTimeout, atMost: maximumWaiting)
      return (nil, shouldOpen(&state))
    }
    if let ready { return ready }
    if mustOpen { openOne() }
    return try await reply.value()
  }

  /// Gives a connection back. One that is not fit for the next owner is closed.
  func release(_ connection: Connection) {
    let isFit = connection.isIdle
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
      defer {
        state.idle = []
        state.waiters = []
      }
      return (state.idle, state.waiters)
    }
    for connection in idle { connection.close() }
    waiters.fail(PostgresError(.cannotConnect, "the database was closed"))
  }

  /// Turns away the waiters whose time is up, and tries again to open a connection for the others.
  ///
  /// - Returns: how many callers wait, and how many connections are taken.
  func tick(at now: ContinuousClock.Instant) -> (waiting: Int, taken: Int) {
    let (late, mustOpen, load) = state.withLock { state in
      let late = state.waiters.removeLate(at: now)
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
        let failed = state.withLock { state -> Deque<Waiter> in
          state.opening -= 1
          state.total -= 1
          state.backoff.note(error)
          // While others are open, one of them may still become free in time.
          guard state.total == 0 else { return [] }
          defer { state.waiters = [] }
          return state.waiters
        }
        failed.fail(error)
      }
    }
  }

  private func offer(_ connection: Connection, _ state: inout State) {
    while let waiter = state.waiters.popFirst() {
      // False if that caller gave up.
      if waiter.reply.fulfil(.success(connection)) { return }
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
    var waiters: Deque<Waiter> = []
    var backoff = Backoff()
    var isShut = false
  }

  private let state = Lock(State())
  private let waitTimeout: Duration
  private let maximumWaiting: Int
  private let makeConnection: @Sendable () async throws -> Connection

  init(waitTimeout: Duration, maximumWaiting: Int, open: @escaping @Sendable () async throws -> Connection) {
    self.waitTimeout = waitTimeout
    self.maximumWaiting = maximumWaiting
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

  func connection() async throws -> Connection {
    let reply = Reply<Connection>()
    let (ready, mustOpen) = try state.withLock { state -> (Connection?, Bool) in
      if let connection = state.connection, connection.isOpen { return (connection, false) }
      if state.isShut { throw PostgresError(.cannotConnect, "the database is closed") }
      if !state.isOpening { try state.backoff.check() }
      try state.waiters.add(reply, timeout: waitTimeout, atMost: maximumWaiting)
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
        defer { state.waiters = [] }
        return (state.waiters, state.isShut)
      }
      if isShut, case .success(let connection) = result { connection.close() }
      for waiter in waiters { waiter.reply.fulfil(result) }
    }
  }

  /// Turns away the waiters whose time is up.
  func expire(at now: ContinuousClock.Instant) {
    state.withLock { $0.waiters.removeLate(at: now) }.fail(waitedTooLong)
  }

  func close() {
    let (connection, waiters) = state.withLock { state in
      state.isShut = true
      defer {
        state.connection = nil
        state.waiters = []
      }
      return (state.connection, state.waiters)
    }
    connection?.close()
    waiters.fail(PostgresError(.cannotConnect, "the database was closed"))
  }
}
