import Foundation
import Logging
import Postgres

/// Sends rows and handles the outcomes.
extension Dispatcher {
  // MARK: Before a send

  /// Rereads the data that the next sends depend on. A send begins with this read and respects all changes committed
  /// before it.
  func prepare(_ group: inout TaskGroup<Happening>) {
    let numbers = ready
    ready.removeAll()
    for (place, source) in sources.enumerated() {
      let mine = numbers.compactMap { number -> (number: Int, row: LeasedRow)? in
        guard let run = runs[number], run.source == place else { return nil }
        return run.rows.first.map { (number, $0) }
      }
      let rows = mine.map(\.row)
      guard !rows.isEmpty else { continue }
      preparations += 1
      group.addTask {
        do {
          return .prepared(Prepared(source: place, runs: mine, result: .success(try await source.prepare(rows))))
        } catch {
          return .prepared(Prepared(source: place, runs: mine, result: .failure(error)))
        }
      }
    }
  }

  func begin(_ prepared: Prepared, _ mode: Mode, _ group: inout TaskGroup<Happening>) {
    preparations -= 1
    switch prepared.result {
    case .failure(let error):
      prepareFailures += 1
      prepareAt = .now + min(.seconds(2), .milliseconds(50) * (1 << min(prepareFailures, 6)))
      if !Task.isCancelled { logger.warning("sends cannot be prepared", metadata: ["error": "\(error)"]) }
      if mode != .untilStopped {
        failure = error
        stop()
      }
      for (number, _) in prepared.runs {
        free(number, after: nil)
        ready.append(number)
      }
    case .success(let verdicts):
      prepareFailures = 0
      for (number, read) in prepared.runs {
        guard let run = runs[number], let row = run.rows.first else { continue }
        // It was claimed again while it was read.
        guard row.lease.token == read.lease.token else {
          free(number, after: nil)
          ready.append(number)
          continue
        }
        begin(number, run, row, verdicts[row.id], mode, &group)
      }
    }
  }

  private func begin(
    _ number: Int, _ run: Run, _ row: LeasedRow, _ verdict: Verdict?, _ mode: Mode,
    _ group: inout TaskGroup<Happening>
  ) {
    guard case .send(let send) = verdict else {
      free(number, after: nil)
      switch verdict {
      case .refused(let failure): end(number, row, failure)
      case .later(let seconds):
        acknowledgements[run.source].postpone(row, by: seconds)
        drop(number, from: 1)
      case .withdrawn:
        acknowledgements[run.source].finish(row)
        advance(number)
      // Another worker has the row, or it was deleted: the rows behind it are not this worker's to send, either.
      default: drop(number, from: 1)
      }
      return
    }
    if isStopping || isSolo && !run.isSuspect {
      free(number, after: nil)
      return drop(number, from: 0)
    }
    let now = Instant.now
    if let host = send.host, let until = circuits[host]?.admit(at: now) {
      free(number, after: nil)
      return leaveAlone(number, row, until: until, now)
    }
    // The device may have a new address.
    if run.slots != send.keys {
      free(number, after: nil)
      guard capacity.hasRoom(for: send.keys) else {
        note(.notTried, of: send.host)
        return park(number, send, mode, now)
      }
      capacity.take(send.keys)
      runs[number]?.slots = send.keys
    }
    runs[number]?.send = send
    runs[number]?.isSending = true
    sending += 1
    group.addTask {
      do {
        try await send.body()
        return .sent(run: number, after: .now - now, .delivered)
      } catch {
        // It is unknown whether a send that was cut short arrived, so it is sent again.
        if Task.isCancelled { return .sent(run: number, after: .now - now, .notTried) }
        let failure = DeliveryFailure(error)
        return .sent(run: number, after: .now - now, failure.isLocal ? .notTried : .failed(failure))
      }
    }
  }

  // MARK: After a send

  func end(_ number: Int, after time: Duration, _ outcome: Outcome) {
    sending -= 1
    guard let run = runs[number], let row = run.rows.first else { return }
    free(number, after: time)
    note(outcome, of: run.send?.host)
    runs[number]?.isSending = false
    switch outcome {
    case .delivered:
      acknowledgements[run.source].finish(row)
      advance(number)
    case .notTried:
      if isStopping || isCutShort {
        drop(number, from: 0)
      } else {
        acknowledgements[run.source].postpone(row, by: Double.random(in: 0.5...1))
        drop(number, from: 1)
      }
    case .failed(let failure): end(number, row, failure)
    }
  }

  func note(_ outcome: Outcome, of host: String?) {
    guard let host else { return }
    let isTimeout: Bool? =
      switch outcome {
      case .delivered: false
      case .notTried: nil
      case .failed(let failure): failure.isTimeout
      }
    var circuit = circuits[host] ?? Circuit()
    circuit.note(isTimeout: isTimeout, at: .now)
    if circuits.count > Self.maximumCircuits { circuits.removeAll() }
    circuits[host] = circuit.isClosed ? nil : circuit
  }

  /// Handles a failed attempt.
  func end(_ number: Int, _ row: LeasedRow, _ failure: DeliveryFailure) {
    guard let run = runs[number] else { return }
    let table = sources[run.source].queue.table
    logger.warning("not delivered", metadata: ["table": "\(table)", "row": "\(row.id)", "error": "\(failure)"])
    if failure.remedy == .forgettingTheDevice, let device = run.send?.device {
      // The rows are deleted with the device, unless it has another token by now.
      gone.append(device)
      return drop(number, from: 0)
    }
    switch failure.remedy {
    case .later(let seconds) where !isOver(row, run):
      let delay = Backoff.delay(after: row.attempts, notBefore: seconds)
      acknowledgements[run.source].retry(row, after: delay, because: failure.description)
      drop(number, from: 1)
    case .later, .none, .forgettingTheDevice:
      acknowledgements[run.source].discard(row, because: failure.description)
      logger.error(
        "dead letter", metadata: ["table": "\(table)", "row": "\(row.id)", "attempts": "\(row.attempts + 1)"])
      advance(number)
    }
  }

  func isOver(_ row: LeasedRow, _ run: Run) -> Bool {
    guard let createdAt = row.createdAt else { return true }
    return createdAt < Timestamp.now().adding(seconds: -sources[run.source].patience)
  }

  /// Continues with the next row of a run.
  private func advance(_ number: Int) {
    guard var run = runs[number] else { return }
    run.rows = run.rows.dropFirst()
    (run.send, run.parkedAt) = (nil, nil)
    guard !run.rows.isEmpty, !isStopping, !isSolo else {
      runs[number] = run
      return drop(number, from: 0)
    }
    runs[number] = run
    ready.append(number)
  }
}
