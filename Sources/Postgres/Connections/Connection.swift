import CLibpq
import DequeModule
import Foundation
import Synchronization

/// One libpq connection in pipeline mode. A caller sends on an idle connection itself. Otherwise, the reactor's thread
/// sends, and it reads all results, in order, so a caller never waits for the server.
///
/// The unit of work is the batch: one or more statements and one sync. A failing statement skips only the rest of its
/// batch.
final class Connection: Sendable {
  struct State {
    /// nil once the connection is closed.
    var pg: OpaquePointer?
    var batches: Deque<Batch> = []
    var prepared: PreparedStatements
    /// When data last arrived from the server.
    var lastArrival = ContinuousClock.now
    var failure: PostgresError?
    /// A caller's statement changed the session of a shared connection. No other caller's statement may follow it.
    var isTainted = false
  }

  typealias Finished = [(reply: Reply<[Rows]>, result: Result<[Rows], any Error>)]

  let socket: Int32
  /// The server's host, port and address.
  let server: String
  /// The number of batches in flight.
  let depth = Atomic(0)
  /// The size of the parameters in flight.
  let bytes = Atomic(0)
  let wantsToWrite = Atomic(false)
  /// When the running statement began, in nanoseconds of ``clock()``. While nothing is in flight: when the last one
  /// ended.
  let busySince: Atomic<Int64>
  /// Another connection to the same server has failed since this one last received data.
  let isSuspect = Atomic(false)
  let isClosed = Atomic(false)
  /// Callers may no longer take it. A shared connection then closes once the last result has arrived.
  let isRetired = Atomic(false)
  let purpose: Connecting.Purpose
  /// Whether the server rejects all writes of this session, so that its statements can be repeated.
  let isReadOnly: Bool
  let observer: Observer
  let onEvent: (@Sendable (ListenerEvent?) -> Void)?
  let notices = ServerNotices()
  let state: Lock<State>
  let outbox = Lock<[Batch.Request]>([])
  let reactor: Reactor
  let cancelHandle: CancelHandle
  let encryption: Encryption
  /// When the pool replaces the connection. Chosen at random near the end of its lifetime, so that connections that
  /// were opened together are not replaced together.
  private let retiresAt: ContinuousClock.Instant?

  /// Takes over an open, blocking libpq connection.
  ///
  /// - Parameter onEvent: for a listening connection: called with each notification, and with nil when it closes.
  init(
    _ pg: sending OpaquePointer, for purpose: Connecting.Purpose, naming: PreparedStatements.Naming, observer: Observer,
    reactor: Reactor, lifetime: Duration? = nil, onEvent: (@Sendable (ListenerEvent?) -> Void)? = nil
  ) throws {
    self.purpose = purpose
    // Behind a pooler, this server's session says nothing about the next one.
    isReadOnly = purpose != .exclusive && naming == .always && Connection.isReadOnly(pg)
    retiresAt = lifetime.map { .now + $0 * Double.random(in: 0.9...1) }
    self.observer = observer
    self.onEvent = onEvent
    PQsetNoticeReceiver(pg, ServerNotices.receive, Unmanaged.passUnretained(notices).toOpaque())
    PQsetnonblocking(pg, 1)
    guard PQenterPipelineMode(pg) == 1, let cancelHandle = CancelHandle(of: pg) else {
      let message = String(cString: PQerrorMessage(pg))
      PQfinish(pg)
      throw PostgresError(.cannotConnect, message)
    }
    socket = PQsocket(pg)
    server = Connection.server(of: pg)
    self.cancelHandle = cancelHandle
    encryption = Encryption(of: pg)
    self.reactor = reactor
    busySince = Atomic(Connection.clock())
    state = Lock(State(pg: pg, prepared: PreparedStatements(naming)))
    reactor.add(self)
    observer.opened()
  }

  deinit {
    state.withLock { state in
      if let pg = state.pg { PQfinish(pg) }
    }
  }

  var isShared: Bool { purpose == .shared }

  /// Read before each statement, so it avoids the lock, which the reactor holds during system calls.
  var isOpen: Bool {
    !isClosed.load(ordering: .acquiring)
  }

  /// Whether a caller may take the connection.
  var isAvailable: Bool {
    isOpen && !isRetired.load(ordering: .acquiring)
  }

  func isTooOld(at now: ContinuousClock.Instant) -> Bool {
    retiresAt.map { $0 < now } ?? false
  }

  /// Whether the connection is open and not suspect. An idle connection shows no sign itself when its host dies.
  var isHealthy: Bool {
    isOpen && !isSuspect.load(ordering: .relaxed)
  }

  func markSuspect() {
    isSuspect.store(true, ordering: .relaxed)
  }

  private static func server(of pg: OpaquePointer) -> String {
    let host = PQhost(pg).map { String(cString: $0) } ?? ""
    let port = PQport(pg).map { String(cString: $0) } ?? ""
    // The name may resolve to another address by now.
    let address = PQhostaddr(pg).map { String(cString: $0) } ?? ""
    return "\(host):\(port) \(address)"
  }

  /// Whether the server reports the session as read-only. Servers before PostgreSQL 14 do not report it.
  static func isReadOnly(_ pg: OpaquePointer) -> Bool {
    func isOn(_ name: String) -> Bool { PQparameterStatus(pg, name).map { String(cString: $0) } == "on" }
    return isOn("default_transaction_read_only") || isOn("in_hot_standby")
  }

  /// Whether the connection is ready for its next owner: open, nothing in flight, and no open transaction.
  var isIdle: Bool {
    state.withLock { state in
      guard let pg = state.pg else { return false }
      return depth.load(ordering: .relaxed) == 0 && PQtransactionStatus(pg) == PQTRANS_IDLE
    }
  }

  /// Sends the statements and one sync, and returns immediately. The reply fails with the first error.
  ///
  /// If nothing is in flight, the caller sends them itself. Otherwise, they wait in the outbox for the reactor's
  /// thread: it sends those of several callers together, and no caller waits while another holds the connection's lock
  /// during a system call. If the connection has been idle for a while, the reactor also sends: it reads first, so that
  /// nothing is sent to a server that has closed the connection.
  ///
  /// - Parameters:
  ///   - timeout: the time in which a live server has responded.
  ///   - deadline: the caller's deadline, if it is sooner.
  func submit(_ statements: [SQL], timeout: Duration, by deadline: ContinuousClock.Instant? = nil) -> Reply<[Rows]> {
    let reply = Reply<[Rows]>()
    if let problem = statements.problem {
      reply.fulfil(.failure(problem))
      return reply
    }
    let now = ContinuousClock.now
    let limit = now + timeout
    let call = Batch.Call(
      reply: reply, sent: now, deadline: min(deadline ?? limit, limit), limit: limit,
      firstResultBy: statements.count > 1 ? now + timeout / statements.count : limit, bytes: statements.parameterBytes)
    var maySend = false
    if depth.wrappingAdd(1, ordering: .relaxed).oldValue == 0 {
      let clock = Self.clock()
      maySend = clock - busySince.exchange(clock, ordering: .relaxed) < Self.maximumPause
    }
    bytes.wrappingAdd(call.bytes, ordering: .relaxed)
    let isFirst = outbox.withLock { outbox in
      outbox.append(Batch.Request(statements: statements, call: call))
      return outbox.count == 1
    }
    if isFirst, !(maySend && sendOutboxIfFree()) { reactor.send(self) }
    return reply
  }

  /// How long a connection may have been idle before a caller sends on it, in nanoseconds.
  private static let maximumPause: Int64 = 100_000_000

  // MARK: Load

  /// The time that a short statement takes, in nanoseconds.
  private static let shortStatement: Int64 = 50_000

  /// How long a statement sent now would probably wait, in nanoseconds. A statement that has run long will probably
  /// keep running, so the age of the running statement counts like the statements behind it.
  func expectedWait() -> Int64 {
    let depth = depth.load(ordering: .relaxed)
    guard depth > 0 else { return 0 }
    return Int64(depth) * Self.shortStatement + max(0, Self.clock() - busySince.load(ordering: .relaxed))
  }

  /// Whether nothing has been in flight for this long.
  func isIdle(for time: Duration) -> Bool {
    depth.load(ordering: .relaxed) == 0
      && .nanoseconds(Self.clock() - busySince.load(ordering: .relaxed)) > time
  }

  /// A monotonic clock in nanoseconds, which fits an atomic.
  static func clock() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
