import CLibpq
import DequeModule
import Foundation
import Synchronization

/// One libpq connection in pipeline mode. The reactor's thread sends statements and reads results, in order, so a
/// caller never waits for the connection itself. The lock protects against callers that close it or query its state.
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
    var lastAnswer = ContinuousClock.now
    var failure: PostgresError?
  }

  private typealias Finished = [(reply: Reply<[Rows]>, result: Result<[Rows], any Error>)]

  let socket: Int32
  /// The server's host, port and address.
  let server: String
  /// The number of batches in flight.
  let depth = Atomic(0)
  /// The size of the parameters in flight.
  let bytes = Atomic(0)
  let wantsToWrite = Atomic(false)
  /// Another connection to the same server has failed since this one last received data.
  private let isDoubted = Atomic(false)
  private let isClosed = Atomic(false)
  private let isShared: Bool
  private let observer: Observer
  private let hear: (@Sendable (ListenerEvent?) -> Void)?
  private let notices = ServerNotices()
  private let state: Lock<State>
  private let outbox = Lock<[Batch.Request]>([])
  private let reactor: Reactor
  private let cancelHandle: CancelHandle
  /// How long after a deadline a silent connection is considered dead.
  private static let grace = Duration.seconds(3)

  /// Takes over an open, blocking libpq connection.
  ///
  /// - Parameter hear: for a listening connection: called with each notification, and with nil when it closes.
  init(
    _ pg: sending OpaquePointer, for purpose: Connecting.Purpose, naming: PreparedStatements.Naming, observer: Observer,
    reactor: Reactor,
    hear: (@Sendable (ListenerEvent?) -> Void)? = nil
  ) throws {
    isShared = purpose == .shared
    self.observer = observer
    self.hear = hear
    PQsetNoticeReceiver(pg, ServerNotices.receive, Unmanaged.passUnretained(notices).toOpaque())
    PQsetnonblocking(pg, 1)
    guard PQenterPipelineMode(pg) == 1, let cancel = PQgetCancel(pg) else {
      let message = String(cString: PQerrorMessage(pg))
      PQfinish(pg)
      throw PostgresError(.cannotConnect, message)
    }
    socket = PQsocket(pg)
    server = Connection.server(of: pg)
    cancelHandle = CancelHandle(cancel)
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

  /// Read before each statement, so it avoids the lock, which the reactor holds during system calls.
  var isOpen: Bool {
    !isClosed.load(ordering: .acquiring)
  }

  /// Whether the connection is open and not suspect. An idle connection shows no sign itself when its host dies.
  var isTrusted: Bool {
    isOpen && !isDoubted.load(ordering: .relaxed)
  }

  func doubt() {
    isDoubted.store(true, ordering: .relaxed)
  }

  private static func server(of pg: OpaquePointer) -> String {
    let host = PQhost(pg).map { String(cString: $0) } ?? ""
    let port = PQport(pg).map { String(cString: $0) } ?? ""
    // The name may resolve to another address by now.
    let address = PQhostaddr(pg).map { String(cString: $0) } ?? ""
    return "\(host):\(port) \(address)"
  }

  /// Whether the connection is ready for its next owner: open, nothing in flight, and no open transaction.
  var isIdle: Bool {
    state.withLock { state in
      guard let pg = state.pg else { return false }
      return depth.load(ordering: .relaxed) == 0 && PQtransactionStatus(pg) == PQTRANS_IDLE
    }
  }

  // MARK: Sending

  /// Puts the statements and one sync into the outbox and returns at once. The reply fails with the first error.
  ///
  /// The reactor's thread does the sending. A caller would hold the connection's lock during a system call, and with
  /// more threads than processors, it could be preempted at that point and block all other callers.
  ///
  /// - Parameters:
  ///   - timeout: the time in which a live server has responded.
  ///   - deadline: the caller's deadline, if it is sooner.
  func submit(_ statements: [SQL], timeout: Duration, by deadline: ContinuousClock.Instant? = nil) -> Reply<[Rows]> {
    let reply = Reply<[Rows]>()
    if let problem = statements.lazy.compactMap(\.problem).first {
      reply.fulfil(.failure(problem))
      return reply
    }
    let now = ContinuousClock.now
    let limit = now + timeout
    let call = Batch.Call(
      reply: reply, sent: now, deadline: min(deadline ?? limit, limit), limit: limit,
      firstAnswerBy: statements.count > 1 ? now + timeout / statements.count : limit, bytes: statements.parameterBytes)
    depth.wrappingAdd(1, ordering: .relaxed)
    bytes.wrappingAdd(call.bytes, ordering: .relaxed)
    let isFirst = outbox.withLock { outbox in
      outbox.append(Batch.Request(statements: statements, call: call))
      return outbox.count == 1
    }
    if isFirst { reactor.send(self) }
    return reply
  }

  /// Sends the contents of the outbox. Called on the reactor's thread.
  func sendOutbox() {
    let requests = outbox.withLock { outbox in
      defer { outbox.removeAll(keepingCapacity: true) }
      return outbox
    }
    deliver(
      state.withLock { state -> Finished in
        var finished: Finished = []
        // libpq sends at each sync. Holding data back until the last sync makes one packet, which wakes the server
        // once. Only while the connection is open: afterwards, its file descriptor may belong to another socket.
        if requests.count > 1, state.pg != nil { holdBack(true) }
        for request in requests {
          guard let pg = state.pg else {
            let why = state.failure?.message ?? "the connection is closed"
            finished.append((settle(request.call), .failure(PostgresError(.connectionLost, why))))
            continue
          }
          var steps: [Batch.Step] = []
          var isSent = true
          for statement in request.statements where isSent { isSent = send(statement, to: pg, &state, &steps) }
          isSent = isSent && PQpipelineSync(pg) == 1
          state.batches.append(Batch(steps: steps, call: request.call))
          if !isSent { finished += close(&state, Self.lost(pg)) }
        }
        if let pg = state.pg {
          finished += flush(pg, &state)
          if requests.count > 1 { holdBack(false) }
        }
        return finished
      })
  }

  /// Removes a call from the counts of work in flight.
  private func settle(_ call: Batch.Call) -> Reply<[Rows]> {
    depth.wrappingSubtract(1, ordering: .relaxed)
    bytes.wrappingSubtract(call.bytes, ordering: .relaxed)
    return call.reply
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

  private func send(_ sql: SQL, to pg: OpaquePointer, _ state: inout State, _ steps: inout [Batch.Step]) -> Bool {
    let key = PreparedStatements.Key(sql)
    var statement = state.prepared.use(key)
    let count = Int32(key.types.count)
    if statement == nil, let new = state.prepared.add(key) {
      if let old = new.replaced {
        guard PQsendQueryParams(pg, "DEALLOCATE \(old)", 0, nil, nil, nil, nil, 1) == 1 else { return false }
        steps.append(.deallocate)
      }
      guard PQsendPrepare(pg, new.statement.name, key.text, count, key.types) == 1 else { return false }
      steps.append(.prepare(key, new.statement))
      statement = new.statement
    }
    steps.append(.query(key, statement))
    return sql.withPointers { values, lengths, formats in
      if let name = statement?.name { return PQsendQueryPrepared(pg, name, count, values, lengths, formats, 1) == 1 }
      return PQsendQueryParams(pg, key.text, count, key.types, values, lengths, formats, 1) == 1
    }
  }

  private func flush(_ pg: OpaquePointer, _ state: inout State) -> Finished {
    switch PQflush(pg) {
    case 0:
      wantsToWrite.store(false, ordering: .releasing)
      return []
    case 1:
      // The socket is full. The reactor waits until it is writable and keeps reading, or both sides would wait forever.
      wantsToWrite.store(true, ordering: .releasing)
      reactor.wake()
      return []
    default:
      return close(&state, Self.lost(pg))
    }
  }

  // MARK: Receiving, on the reactor's thread

  func socketIsReady() {
    deliver(
      state.withLock { state -> Finished in
        guard let pg = state.pg else { return [] }
        var isAlive = PQconsumeInput(pg) == 1
        // A TLS record may be larger than libpq reads at once. `poll` would not report the rest.
        if isAlive, PQsslInUse(pg) != 0 { isAlive = PQconsumeInput(pg) == 1 }
        state.lastAnswer = .now
        var (finished, isBroken) = read(pg, &state)
        if let hear { Self.takeNotifications(pg, hear) }
        if isBroken || !isAlive || PQstatus(pg) == CONNECTION_BAD {
          finished += close(&state, Self.lost(pg))
        } else if isShared, state.batches.isEmpty, PQtransactionStatus(pg) != PQTRANS_IDLE {
          // One caller's BEGIN would put the statements of all callers into one transaction.
          let misuse = PostgresError(.connectionLost, "a statement left a transaction open on a shared connection")
          finished += close(&state, misuse, isFailure: false)
        } else {
          isDoubted.store(false, ordering: .relaxed)
          if wantsToWrite.load(ordering: .relaxed) { finished += flush(pg, &state) }
        }
        return finished
      })
  }

  /// Reads all results that have arrived. Never blocks.
  private func read(_ pg: OpaquePointer, _ state: inout State) -> (Finished, isBroken: Bool) {
    var finished: Finished = []
    while !state.batches.isEmpty, PQisBusy(pg) == 0 {
      guard let result = PQgetResult(pg) else {
        // NULL ends one statement's results. If the connection is gone, only NULL follows.
        if PQstatus(pg) == CONNECTION_BAD { break }
        state.batches[0].position += 1
        continue
      }
      if PQresultStatus(result) == PGRES_PIPELINE_SYNC {
        PQclear(result)
        var batch = state.batches.removeFirst()
        if notices.takeUnconfirmed() {
          batch.error =
            batch.error
            ?? PostgresError(.unknownOutcome, "the standby did not confirm the commit", mayHaveRun: true)
        }
        let texts = batch.steps.lazy.compactMap { if case .query(let key, _) = $0 { key.text } else { nil } }
        observer.finished(texts, after: state.lastAnswer - batch.call.sent)
        finished.append((settle(batch.call), batch.error.map { .failure($0) } ?? .success(batch.rows)))
      } else if !take(result, &state) {
        return (finished, true)
      }
    }
    return (finished, false)
  }

  private static func takeNotifications(_ pg: OpaquePointer, _ hear: (ListenerEvent) -> Void) {
    while let notification = PQnotifies(pg) {
      defer { PQfreemem(notification) }
      hear(
        .notification(
          channel: String(cString: notification.pointee.relname),
          payload: notification.pointee.extra.map { String(cString: $0) } ?? ""))
    }
  }

  /// Records a result of the oldest batch. Returns false if the connection cannot be used anymore.
  private func take(_ result: OpaquePointer, _ state: inout State) -> Bool {
    let position = state.batches[0].position
    guard position < state.batches[0].steps.count else {
      PQclear(result)
      return false
    }
    let step = state.batches[0].steps[position]
    let status = PQresultStatus(result)
    if case .prepare(let key, let statement) = step {
      state.prepared.settle(key, statement, isPrepared: status == PGRES_COMMAND_OK)
    }
    switch status {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      guard case .query(_, let statement) = step else {
        PQclear(result)
        break
      }
      let handle = ResultHandle(result, columns: statement?.columns)
      statement?.note(handle.columns)
      state.batches[0].rows.append(Rows(handle))
    case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
      PQclear(result)
      state.batches[0].error = PostgresError(.misuse, "COPY cannot run in pipeline mode")
      return false
    case PGRES_PIPELINE_ABORTED:
      PQclear(result)
    default:
      let error = PostgresError(result: result)
      PQclear(result)
      guard error.sqlState != nil else { return false }
      if case .query(let key, _) = step, error.isStalePlan { state.prepared.forget(key) }
      state.batches[0].error = state.batches[0].error ?? error
    }
    return true
  }

  // MARK: Ending

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
    if isFailure { reactor.doubtOthers(than: self) }
    observer.closed()
    hear?(nil)
    let finished = state.batches.map { batch -> Finished.Element in
      // The server may have sent the reason before it closed the connection.
      var reason = batch.error ?? error
      reason.mayHaveRun = true
      return (settle(batch.call), .failure(reason))
    }
    state.batches.removeAll()
    return finished
  }

  private static func lost(_ pg: OpaquePointer) -> PostgresError {
    let message = String(cString: PQerrorMessage(pg)).trimmingCharacters(in: .whitespacesAndNewlines)
    return PostgresError(.connectionLost, message.isEmpty ? "the connection is lost" : message, mayHaveRun: true)
  }

  /// Called without the lock: other locks must never nest in it.
  private func deliver(_ finished: Finished) {
    for (reply, result) in finished { reply.fulfil(result) }
  }

  /// Fails the calls whose deadline has passed. Closes the connection if it stays silent long after that.
  func expire(at now: ContinuousClock.Instant) {
    deliver(
      state.withLock { state -> Finished in
        guard let oldest = state.batches.first else { return [] }
        // Results of slow statements ahead of it count as signs of life.
        if max(oldest.call.limit, state.lastAnswer) + Self.grace < now {
          return close(&state, PostgresError(.connectionLost, "the server does not respond", mayHaveRun: true))
        }
        var finished: Finished = []
        var isSilent = false
        for index in state.batches.indices {
          let call = state.batches[index].call
          if call.firstAnswerBy < now, state.lastAnswer < call.sent { isSilent = true }
          guard call.deadline < now, !state.batches[index].isExpired else { continue }
          state.batches[index].isExpired = true
          let error = PostgresError(.timeout, "no response within the statement's deadline", mayHaveRun: true)
          finished.append((call.reply, .failure(error)))
        }
        // Mark the others before the caller gets its error, or it could retry on another dead connection.
        if isSilent { reactor.doubtOthers(than: self) }
        return finished
      })
  }

  /// Asks the server, over a separate connection, to cancel this connection's current statement.
  ///
  /// - Returns: whether the request has completed, so that it cannot hit later statements. If false, it may still
  ///   arrive later and cancel whichever statement runs then.
  func cancelRunning(within limit: Duration) async -> Bool {
    let reply = Reply<Bool>()
    BlockingWork.run { [cancelHandle] in reply.fulfil(.success(cancelHandle.cancel())) }
    let alarm = Task {
      try await Task.sleep(for: limit)
      reply.fulfil(.success(false))
    }
    defer { alarm.cancel() }
    return (try? await reply.uncancellableValue()) ?? false
  }
}
