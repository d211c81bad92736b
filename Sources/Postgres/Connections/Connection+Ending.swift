import CLibpq
import DequeModule
import Foundation
import Synchronization

extension Connection {
  /// How long after a deadline a silent connection is considered dead.
  private static let grace = Duration.seconds(3)

  /// Closes a shared connection once its last result has arrived. Callers that took it before still get results, or an
  /// error after which they take another.
  func retire() {
    isRetired.store(true, ordering: .releasing)
    deliver(
      state.withLock { state in
        guard state.batches.isEmpty, depth.load(ordering: .relaxed) == 0 else { return [] }
        return close(&state, PostgresError(.connectionLost, "the connection is closing"), isFailure: false)
      })
  }

  /// - Parameter isFailure: whether the server seems to be gone or has become a standby.
  func close(isFailure: Bool = false) {
    let error = PostgresError(.connectionLost, "the connection was closed", mayHaveRun: true)
    deliver(state.withLock { close(&$0, error, isFailure: isFailure) })
  }

  func close(_ state: inout State, _ error: PostgresError, isFailure: Bool = true) -> Finished {
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
      // The server may have sent the reason before it closed the connection.
      var reason = batch.error ?? error
      reason.mayHaveRun = true
      reason.isHarmless = isReadOnly && batch.effect == .none
      return (settle(batch.call), .failure(reason))
    }
    state.batches.removeAll()
    return finished
  }

  static func lost(_ pg: OpaquePointer) -> PostgresError {
    let message = String(cString: PQerrorMessage(pg)).trimmingCharacters(in: .whitespacesAndNewlines)
    return PostgresError(.connectionLost, message.isEmpty ? "the connection is lost" : message, mayHaveRun: true)
  }

  /// Called without the connection's lock: other locks must never nest in it.
  func deliver(_ finished: Finished) {
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
          let call = batch.call
          if call.firstResultBy < now, state.lastArrival < call.sent { isSilent = true }
          guard call.deadline < now, !batch.isExpired else { continue }
          batch.isExpired = true
          let error = PostgresError(.timeout, "no response within the statement's deadline", mayHaveRun: true)
          finished.append((call.reply, .failure(error)))
        }
        // Mark the others before the caller gets its error, or it could retry on another dead connection.
        if isSilent { reactor.suspectOthers(than: self) }
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
