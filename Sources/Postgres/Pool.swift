import DequeModule
import Synchronization

/// The bounded set of connections of which each has one owner at a time. Callers queue in order, with a deadline;
/// connections are opened when they are wanted, and broken ones replaced with backoff.
final class Pool: Sendable {
  private struct Waiter {
    let reply: Reply<Connection>
    let deadline: ContinuousClock.Instant
  }

  private struct State {
    var idle: [Connection] = []
    /// Open or being opened, idle or not.
    var total = 0
    var opening = 0
    var waiters: Deque<Waiter> = []
    var backoff = Backoff()
    var isClosed = false
  }

  private let state = Mutex(State())
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
      guard state.waiters.count < maximumWaiting else {
        throw PostgresError(.overloaded, "\(state.waiters.count) callers wait for a connection already")
      }
      state.waiters.append(Waiter(reply: reply, deadline: .now + waitTimeout))
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
    for waiter in waiters {
      waiter.reply.fulfil(.failure(PostgresError(.cannotConnect, "the database was closed")))
    }
  }

  /// Turns away the waiters whose time is up.
  func expire(at now: ContinuousClock.Instant) {
    let late = state.withLock { state in
      let late = state.waiters.filter { $0.deadline < now }
      if !late.isEmpty { state.waiters.removeAll { $0.deadline < now } }
      return late
    }
    for waiter in late {
      waiter.reply.fulfil(.failure(PostgresError(.timeout, "no connection became free in time")))
    }
  }

  private func shouldOpen(_ state: inout State) -> Bool {
    guard !state.isClosed, state.total < size, state.opening < state.waiters.count else { return false }
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
        for waiter in failed { waiter.reply.fulfil(.failure(error)) }
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
  private var delay = Duration.milliseconds(50)
  private var failure: (any Error)?

  /// - Throws: the last failure, while it is too early to try again.
  func check() throws {
    if let until, let failure, ContinuousClock.now < until { throw failure }
  }

  mutating func note(_ error: any Error) {
    failure = error
    until = .now + delay * Double.random(in: 0.8...1.2)
    delay = min(delay * 2, .seconds(1))
  }

  mutating func reset() {
    self = Backoff()
  }
}

/// One connection shared by many callers, each with single statements. Opened when first wanted and again after a loss.
final class Lane: Sendable {
  private enum State {
    case closed(Backoff)
    case opening(Backoff, [Reply<Connection>])
    case open(Connection)
    case shut
  }

  private let state = Mutex(State.closed(Backoff()))
  private let openConnection: @Sendable () async throws -> Connection

  init(open: @escaping @Sendable () async throws -> Connection) {
    openConnection = open
  }

  /// Batches under way: what lanes are chosen by.
  var depth: Int {
    state.withLock { state in
      if case .open(let connection) = state { return connection.depth.load(ordering: .relaxed) }
      return 0
    }
  }

  func connection() async throws -> Connection {
    let reply = Reply<Connection>()
    let (ready, mustOpen) = try state.withLock { state -> (Connection?, Bool) in
      var backoff = Backoff()
      switch state {
      case .open(let connection) where connection.isOpen:
        return (connection, false)
      case .opening(let backoff, let waiting):
        state = .opening(backoff, waiting + [reply])
        return (nil, false)
      case .shut:
        throw PostgresError(.cannotConnect, "the database is closed")
      case .closed(let known):
        backoff = known
        try backoff.check()
      case .open:
        break
      }
      state = .opening(backoff, [reply])
      return (nil, true)
    }
    if let ready { return ready }
    if mustOpen { Task.detached { [self] in await open() } }
    return try await reply.value()
  }

  private func open() async {
    let result: Result<Connection, any Error>
    do { result = .success(try await openConnection()) } catch { result = .failure(error) }
    let waiting = state.withLock { state -> [Reply<Connection>]? in
      guard case .opening(var backoff, let waiting) = state else { return nil }
      switch result {
      case .success(let connection):
        state = .open(connection)
      case .failure(let error):
        backoff.note(error)
        state = .closed(backoff)
      }
      return waiting
    }
    guard let waiting else {
      if case .success(let connection) = result { connection.close() }
      return
    }
    for reply in waiting { reply.fulfil(result) }
  }

  func close() {
    let old = state.withLock { state in
      defer { state = .shut }
      return state
    }
    switch old {
    case .open(let connection): connection.close()
    case .opening(_, let waiting):
      for reply in waiting { reply.fulfil(.failure(PostgresError(.cannotConnect, "the database was closed"))) }
    case .closed, .shut: break
    }
  }
}
