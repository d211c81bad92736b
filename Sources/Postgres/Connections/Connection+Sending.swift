import CLibpq
import Foundation
import Synchronization

/// Sending, on the reactor's thread, or on a caller's if the connection is idle.
extension Connection {
  /// Sends the contents of the outbox. Called on the reactor's thread.
  func sendOutbox() {
    deliver(state.withLock { sendOutbox(&$0) })
  }

  /// Sends the contents of the outbox, unless another thread uses the connection. Saves waking the reactor.
  ///
  /// - Returns: whether the outbox was sent.
  func sendOutboxIfFree() -> Bool {
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
      var steps: [Batch.Step] = []
      steps.reserveCapacity(request.statements.count)
      var effect = SessionEffect.none
      var isSent = true
      for statement in request.statements where isSent { isSent = send(statement, to: pg, &state, &steps, &effect) }
      isSent = isSent && PQpipelineSync(pg) == 1
      state.batches.append(Batch(steps: steps, call: request.call, effect: effect))
      if isShared { state.isTainted = effect > .none }
      if state.isTainted || effect == .session { isRetired.store(true, ordering: .releasing) }
      if !isSent { finished += close(&state, Self.lost(pg)) }
    }
    finished += flush(&state)
    if requests.count > 1, state.pg != nil { holdBack(false) }
    return finished
  }

  /// Removes a call from the counts of work in flight.
  func settle(_ call: Batch.Call) -> Reply<[Rows]> {
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

  private func send(
    _ sql: SQL, to pg: OpaquePointer, _ state: inout State, _ steps: inout [Batch.Step], _ effect: inout SessionEffect
  ) -> Bool {
    let statement: PreparedStatements.Statement
    if let known = state.prepared.use(sql.template) {
      statement = known
    } else if let new = state.prepared.add(sql.template) {
      statement = new.statement
      for old in new.replaced {
        guard PQsendQueryParams(pg, "DEALLOCATE \(old)", 0, nil, nil, nil, nil, 1) == 1 else { return false }
        steps.append(.deallocate(old))
      }
      let types = sql.types
      guard PQsendPrepare(pg, statement.nameBytes, sql.text, Int32(types.count), types) == 1 else { return false }
      steps.append(.prepare(statement))
    } else {
      statement = state.prepared.unnamed(sql.template)
    }
    steps.append(.query(statement))
    effect = max(effect, statement.effect)
    let count = Int32(sql.parameterCount)
    guard statement.isNamed else {
      let (text, types) = (sql.text, sql.types)
      return sql.withPointers { PQsendQueryParams(pg, text, count, types, $0, $1, $2, 1) == 1 }
    }
    return sql.withPointers { PQsendQueryPrepared(pg, statement.nameBytes, count, $0, $1, $2, 1) == 1 }
  }

  func flush(_ state: inout State) -> Finished {
    guard let pg = state.pg else { return [] }
    switch PQflush(pg) {
    case 0:
      wantsToWrite.store(false, ordering: .releasing)
    case 1:
      // The socket is full. The reactor waits until it is writable and keeps reading, or both sides would wait forever.
      wantsToWrite.store(true, ordering: .releasing)
      reactor.wake()
    default:
      return close(&state, Self.lost(pg))
    }
    // libpq also reads while the socket is full. The socket shows no sign of what libpq or OpenSSL has read.
    while encryption.hasMore(of: pg), PQconsumeInput(pg) == 1 {}
    return readBuffered(&state)
  }
}
