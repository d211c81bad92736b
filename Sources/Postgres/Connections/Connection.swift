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
  private struct State {
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

  /// Calls that have ended. Their replies are fulfilled without the connection's lock: other locks must never nest in
  /// it.
  private typealias Finished = [(reply: Reply<[Rows]>, result: Result<[Rows], any Error>)]

  let socket: Int32
  /// The server's host, port and address.
  let server: String
  private let purpose: Connecting.Purpose
  /// Whether a pooler is between, which may be connected to a primary that has become a standby, and reports what its
  /// first server said.
  private let isPooled: Bool
  /// Whether the server rejects all writes of this session, so that its statements can be repeated.
  private let isReadOnly: Bool
  private let observer: Observer
  private let onEvent: (@Sendable (ListenerEvent?) -> Void)?
  private let notices = ServerNotices()
  private let state: Lock<State>
  private let outbox = Lock<[Batch.Request]>([])
  private let reactor: Reactor
  private let cancelHandle: CancelHandle
  private let encryption: Encryption
  /// When the pool replaces the connection. Chosen at random near the end of its lifetime, so that connections that
  /// were opened together are not replaced together.
  private let retiresAt: ContinuousClock.Instant?
  private let load = ConnectionLoad()
  private let isSocketFull = Atomic(false)
  /// Another connection to the same server has failed since this one last received data.
  private let isSuspect = Atomic(false)
  private let isClosed = Atomic(false)
  /// Callers may no longer take it. A shared connection then closes once the last result has arrived.
  private let isRetired = Atomic(false)

  /// How long after a deadline a silent connection is considered dead.
  private static let grace = Duration.seconds(3)

  /// Takes over an open, blocking libpq connection.
  ///
  /// - Parameter onEvent: for a listening connection: called with each notification, and with nil when it closes.
  init(
    _ pg: sending OpaquePointer, for purpose: Connecting.Purpose, naming: PreparedStatements.Naming, observer: Observer,
    reactor: Reactor, lifetime: Duration? = nil, onEvent: (@Sendable (ListenerEvent?) -> Void)? = nil
  ) throws {
    self.purpose = purpose
    // Behind a pooler, this server's session says nothing about the next one.
    isPooled = naming != .always
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
    state = Lock(State(pg: pg, prepared: PreparedStatements(naming)))
    reactor.add(self)
    observer.opened()
  }

  deinit {
    state.withLock { state in
      if let pg = state.pg { PQfinish(pg) }
    }
  }

  private static func server(of pg: OpaquePointer) -> String {
    let host = PQhost(pg).map { String(cString: $0) } ?? ""
    let port = PQport(pg).map { String(cString: $0) } ?? ""
    // The name may resolve to another address by now.
    let address = PQhostaddr(pg).map { String(cString: $0) } ?? ""
    return "\(host):\(port) \(address)"
  }

  /// Whether the server reports the session as read-only.
  private static func isReadOnly(_ pg: OpaquePointer) -> Bool {
    func isOn(_ name: String) -> Bool { PQparameterStatus(pg, name).map { String(cString: $0) == "on" } ?? false }
    return isOn("default_transaction_read_only") || isOn("in_hot_standby")
  }

  private var isShared: Bool { purpose == .shared }

  // MARK: Condition

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

  /// Whether the connection is ready for its next owner: open, nothing in flight, and no open transaction.
  var isIdle: Bool {
    state.withLock { state in
      guard let pg = state.pg else { return false }
      return load.isEmpty && PQtransactionStatus(pg) == PQTRANS_IDLE
    }
  }

  /// Whether nothing has been in flight for this long.
  func isIdle(for time: Duration) -> Bool { load.isEmpty(for: time) }

  /// Whether a statement is in flight.
  var isBusy: Bool { !load.isEmpty }

  /// How long a statement sent now would probably wait, in nanoseconds.
  func expectedWait() -> Int64 { load.expectedWait() }

  func hasBatches(atLeast count: Int) -> Bool { load.hasBatches(atLeast: count) }

  func hasBytes(atLeast count: Int) -> Bool { load.hasBytes(atLeast: count) }

  /// Whether data is left to send once the socket is writable.
  var wantsToWrite: Bool { isSocketFull.load(ordering: .acquiring) }

  // MARK: Sending, on the reactor's thread, or on a caller's if the connection is idle

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
    let maySend = load.add(bytes: call.bytes)
    let isFirst = outbox.withLock { outbox in
      outbox.append(Batch.Request(statements: statements, call: call))
      return outbox.count == 1
    }
    if isFirst, !(maySend && sendOutboxIfFree()) { reactor.send(self) }
    return reply
  }

  /// Sends the contents of the outbox. Called on the reactor's thread.
  func sendOutbox() { deliver(state.withLock { sendOutbox(&$0) }) }

  /// Sends the contents of the outbox, unless another thread uses the connection. Saves waking the reactor.
  ///
  /// - Returns: whether the outbox was sent.
  private func sendOutboxIfFree() -> Bool {
    guard let finished = state.withLockIfFree({ sendOutbox(&$0) }) else { return false }
    deliver(finished)
    return true
  }

  /// Takes the outbox under the connection's lock, so that requests leave in their order.
  private func sendOutbox(_ state: inout State) -> Finished {
    let requests = outbox.withLock { outbox in
      defer { outbox.removeAll(keepingCapacity: true) }
      return outbox
    }
    var finished: Finished = []
    // libpq sends at each sync. Holding data back until the last sync makes one packet, which wakes the server once.
    // Only while the connection is open: afterwards, its file descriptor may belong to another socket.
    if requests.count > 1, state.pg != nil { holdBack(true) }
    for request in requests {
      guard let pg = state.pg, !state.isTainted else {
        let why = state.failure?.message ?? "the connection is closing"
        finished.append((settle(request.call), .failure(PostgresError(.connectionLost, why))))
        continue
      }
      let batch = Batch(request)
      var isSent = true
      for statement in request.statements where isSent { isSent = send(statement, in: batch, to: pg, &state) }
      isSent = isSent && PQpipelineSync(pg) == 1
      state.batches.append(batch)
      if isShared { state.isTainted = batch.effect > .none }
      if state.isTainted || batch.effect == .session { isRetired.store(true, ordering: .releasing) }
      if !isSent { finished += close(&state, Self.lost(pg)) }
    }
    finished += flush(&state)
    if requests.count > 1, state.pg != nil { holdBack(false) }
    return finished
  }

  /// Has no effect on a Unix socket, where sending is cheap.
  private func holdBack(_ isOn: Bool) {
    #if os(Linux)
      let option = TCP_CORK
    #else
      let option = TCP_NOPUSH
    #endif
    var value: Int32 = isOn ? 1 : 0
    setsockopt(socket, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// - Returns: false if the connection is lost.
  private func send(_ sql: SQL, in batch: Batch, to pg: OpaquePointer, _ state: inout State) -> Bool {
    let statement: PreparedStatements.Statement
    if let known = state.prepared.use(sql.template) {
      statement = known
    } else if let new = state.prepared.add(sql.template) {
      statement = new.statement
      for old in new.replaced {
        guard PQsendQueryParams(pg, "DEALLOCATE \(old)", 0, nil, nil, nil, nil, 1) == 1 else { return false }
        batch.append(.deallocate(old))
      }
      let types = sql.types
      guard PQsendPrepare(pg, statement.nameBytes, sql.text, Int32(types.count), types) == 1 else { return false }
      batch.append(.prepare(statement))
    } else {
      statement = state.prepared.unnamed(sql.template)
    }
    batch.append(.query(statement))
    let count = Int32(sql.parameterCount)
    guard statement.isNamed else {
      let (text, types) = (sql.text, sql.types)
      return sql.withPointers { PQsendQueryParams(pg, text, count, types, $0, $1, $2, 1) == 1 }
    }
    return sql.withPointers { PQsendQueryPrepared(pg, statement.nameBytes, count, $0, $1, $2, 1) == 1 }
  }

  private func flush(_ state: inout State) -> Finished {
    guard let pg = state.pg else { return [] }
    switch PQflush(pg) {
    case 0:
      isSocketFull.store(false, ordering: .releasing)
    case 1:
      // The socket is full. The reactor waits until it is writable and keeps reading, or both sides would wait forever.
      isSocketFull.store(true, ordering: .releasing)
      reactor.wake()
    default:
      return close(&state, Self.lost(pg))
    }
    // libpq also reads while the socket is full. The socket shows no sign of what libpq or OpenSSL has read.
    while encryption.hasMore(of: pg), PQconsumeInput(pg) == 1 {}
    return readBuffered(&state)
  }

  // MARK: Receiving, on the reactor's thread

  /// Looks for data that ``Encryption`` may have missed.
  func lookAgain() {
    if encryption == .opaque, !load.isEmpty { receive(isSign: false) }
  }

  func socketIsReady() {
    receive(isSign: true)
  }

  /// - Parameter isSign: whether the socket was ready, which is a sign of life.
  private func receive(isSign: Bool) {
    deliver(
      state.withLock { state -> Finished in
        guard let pg = state.pg else { return [] }
        var isAlive = true
        repeat { isAlive = PQconsumeInput(pg) == 1 } while isAlive && encryption.hasMore(of: pg)
        if isAlive, encryption == .opaque { isAlive = PQconsumeInput(pg) == 1 }
        if isSign { state.lastArrival = .now }
        if let onEvent { Self.takeNotifications(pg, onEvent) }
        var finished = readBuffered(&state, isBroken: !isAlive)
        if state.pg != nil {
          if isSign { isSuspect.store(false, ordering: .relaxed) }
          if isSocketFull.load(ordering: .relaxed) { finished += flush(&state) }
        }
        return finished
      })
  }

  private static func takeNotifications(_ pg: OpaquePointer, _ onEvent: (ListenerEvent) -> Void) {
    while let notification = PQnotifies(pg) {
      defer { PQfreemem(notification) }
      onEvent(
        .notification(
          channel: String(cString: notification.pointee.relname),
          payload: notification.pointee.extra.map { String(cString: $0) } ?? ""))
    }
  }

  /// Reads the results that libpq has received. Closes the connection if it is broken, or if nothing is in flight and no
  /// caller may use it further.
  private func readBuffered(_ state: inout State, isBroken: Bool = false) -> Finished {
    guard let pg = state.pg else { return [] }
    let (finished, isUnreadable) = read(pg, &state)
    if isBroken || isUnreadable || PQstatus(pg) == CONNECTION_BAD {
      return finished + close(&state, Self.lost(pg))
    }
    guard isShared, state.batches.isEmpty else { return finished }
    if isRetired.load(ordering: .acquiring) {
      return finished + close(&state, PostgresError(.connectionLost, "the connection is closing"), isFailure: false)
    }
    if PQtransactionStatus(pg) != PQTRANS_IDLE {
      // One caller's BEGIN would put the statements of all callers into one transaction.
      let misuse = PostgresError(.connectionLost, "a statement left a transaction open on a shared connection")
      return finished + close(&state, misuse, isFailure: false)
    }
    return finished
  }

  /// Reads all results that have arrived. Never blocks.
  private func read(_ pg: OpaquePointer, _ state: inout State) -> (Finished, isBroken: Bool) {
    var finished: Finished = []
    defer { if !finished.isEmpty { load.noteResults() } }
    while let batch = state.batches.first, PQisBusy(pg) == 0 {
      guard let result = PQgetResult(pg) else {
        // NULL ends one statement's results. If the connection is gone, only NULL follows.
        if PQstatus(pg) == CONNECTION_BAD { break }
        batch.endStep()
        continue
      }
      // libpq may have read it while it was sending.
      if state.lastArrival < batch.call.sent { state.lastArrival = .now }
      if PQresultStatus(result) == PGRES_PIPELINE_SYNC {
        PQclear(result)
        state.batches.removeFirst()
        observer.finished(batch.texts, after: state.lastArrival - batch.call.sent)
        finished.append((settle(batch.call), batch.result(isUnconfirmed: notices.takeUnconfirmed())))
      } else {
        let isUsable = batch.take(result, &state.prepared) {
          purpose == .exclusive && (isPooled || Self.isReadOnly(pg))
        }
        if !isUsable { return (finished, true) }
      }
    }
    return (finished, false)
  }

  // MARK: Ending

  /// Removes a call from the counts of work in flight.
  private func settle(_ call: Batch.Call) -> Reply<[Rows]> {
    load.remove(bytes: call.bytes)
    return call.reply
  }

  private func deliver(_ finished: Finished) {
    for (reply, result) in finished { reply.fulfil(result) }
  }

  /// Fails the calls whose deadline has passed. Closes the connection if it stays silent long after that.
  func expire(at now: ContinuousClock.Instant) {
    deliver(
      state.withLock { state -> Finished in
        guard let oldest = state.batches.first else { return [] }
        // Results of slow statements ahead of it count as signs of life.
        if max(oldest.call.limit, state.lastArrival) + Self.grace < now {
          return close(&state, PostgresError(.connectionLost, "the server does not respond", mayHaveRun: true))
        }
        var finished: Finished = []
        var isSilent = false
        for batch in state.batches {
          if batch.call.firstResultBy < now, state.lastArrival < batch.call.sent { isSilent = true }
          guard batch.expire(at: now) else { continue }
          let error = PostgresError(.timeout, "no response within the statement's deadline", mayHaveRun: true)
          finished.append((batch.call.reply, .failure(error)))
        }
        // Mark the others before the caller gets its error, or it could retry on another dead connection.
        if isSilent { reactor.suspectOthers(than: self) }
        return finished
      })
  }

  /// Asks the server to cancel the running statement: see ``CancelHandle/cancel(within:)``.
  func cancelRunning(within limit: Duration) async -> Bool { await cancelHandle.cancel(within: limit) }

  /// Closes a shared connection once its last result has arrived. Callers that took it before still get results, or an
  /// error after which they take another.
  func retire() {
    isRetired.store(true, ordering: .releasing)
    deliver(
      state.withLock { state in
        guard state.batches.isEmpty, load.isEmpty else { return [] }
        return close(&state, PostgresError(.connectionLost, "the connection is closing"), isFailure: false)
      })
  }

  /// - Parameter isFailure: whether the server seems to be gone or has become a standby.
  func close(isFailure: Bool = false) {
    let error = PostgresError(.connectionLost, "the connection was closed", mayHaveRun: true)
    deliver(state.withLock { close(&$0, error, isFailure: isFailure) })
  }

  private func close(_ state: inout State, _ error: PostgresError, isFailure: Bool = true) -> Finished {
    guard let pg = state.pg else { return [] }
    state.pg = nil
    isClosed.store(true, ordering: .releasing)
    state.failure = error
    PQfinish(pg)
    reactor.remove(self)
    if isFailure { reactor.suspectOthers(than: self) }
    observer.closed()
    onEvent?(nil)
    let finished = state.batches.map { batch -> Finished.Element in
      (settle(batch.call), .failure(batch.failure(error, inReadOnlySession: isReadOnly)))
    }
    state.batches.removeAll()
    return finished
  }

  private static func lost(_ pg: OpaquePointer) -> PostgresError {
    let message = String(cString: PQerrorMessage(pg)).trimmingCharacters(in: .whitespacesAndNewlines)
    return PostgresError(.connectionLost, message.isEmpty ? "the connection is lost" : message, mayHaveRun: true)
  }
}
