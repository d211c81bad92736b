import CLibpq
import DequeModule
import Synchronization

/// Receiving, on the reactor's thread.
extension Connection {
  /// Looks for data that ``Encryption`` may have missed.
  func lookAgain() {
    if encryption == .opaque, depth.load(ordering: .relaxed) > 0 { receive(isSign: false) }
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
          if wantsToWrite.load(ordering: .relaxed) { finished += flush(&state) }
        }
        return finished
      })
  }

  /// Reads the results that libpq has received. Closes the connection if it is broken, or if nothing is in flight and no
  /// caller may use it further.
  func readBuffered(_ state: inout State, isBroken: Bool = false) -> Finished {
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
    defer { if !finished.isEmpty { busySince.store(Self.clock(), ordering: .relaxed) } }
    while let batch = state.batches.first, PQisBusy(pg) == 0 {
      guard let result = PQgetResult(pg) else {
        // NULL ends one statement's results. If the connection is gone, only NULL follows.
        if PQstatus(pg) == CONNECTION_BAD { break }
        batch.position += 1
        continue
      }
      // libpq may have read it while it was sending.
      if state.lastArrival < batch.call.sent { state.lastArrival = .now }
      if PQresultStatus(result) == PGRES_PIPELINE_SYNC {
        PQclear(result)
        state.batches.removeFirst()
        if notices.takeUnconfirmed() {
          batch.error =
            batch.error
            ?? PostgresError(.unknownOutcome, "the standby did not confirm the commit", mayHaveRun: true)
        }
        let texts = batch.steps.lazy.compactMap { step in
          if case .query(let statement) = step { statement.key.text } else { nil }
        }
        observer.finished(texts, after: state.lastArrival - batch.call.sent)
        finished.append((settle(batch.call), batch.error.map { .failure($0) } ?? .success(batch.rows)))
      } else if !take(result, of: batch, &state) {
        return (finished, true)
      }
    }
    return (finished, false)
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

  /// Records a result of the oldest batch. Returns false if the connection can no longer be used.
  private func take(_ result: OpaquePointer, of batch: Batch, _ state: inout State) -> Bool {
    guard batch.position < batch.steps.count else {
      PQclear(result)
      return false
    }
    let step = batch.steps[batch.position]
    let status = PQresultStatus(result)
    if case .prepare(let statement) = step {
      state.prepared.settle(statement, isPrepared: status == PGRES_COMMAND_OK)
    }
    switch status {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      guard case .query(let statement) = step else {
        PQclear(result)
        break
      }
      let handle = ResultHandle(result, columns: statement.columns)
      statement.note(handle.columns)
      batch.rows.append(Rows(handle))
    case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
      PQclear(result)
      batch.error = PostgresError(.misuse, "COPY cannot run in pipeline mode")
      return false
    case PGRES_PIPELINE_ABORTED:
      PQclear(result)
      if case .deallocate(let name) = step { state.prepared.keep(name) }
    default:
      var error = PostgresError(result: result)
      PQclear(result)
      guard error.sqlState != nil else { return false }
      if error.sqlState == "25006", purpose == .exclusive, let pg = state.pg {
        error.isFromReadOnlyServer = Self.isReadOnly(pg)
      }
      switch step {
      case .query(let statement) where error.isStalePlan:
        state.prepared.forget(statement, isGone: error.isUnknownStatement)
      case .deallocate(let name) where !error.isUnknownStatement: state.prepared.keep(name)
      case .prepare, .deallocate, .query: break
      }
      batch.error = batch.error ?? error
    }
    return true
  }
}
