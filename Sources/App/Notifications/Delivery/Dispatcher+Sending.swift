import Foundation
import Logging
import Postgres

extension Dispatcher {
  /// What child tasks come back with.
  enum Happening: Sendable {
    case claimed(Claimed)
    case prepared(Prepared)
    case sent(run: Int, after: Duration, Outcome)
    case written(Written, failure: (any Error)?)
    case renewed((any Error)?)
    case alarm(Instant)
    case woken
    case stopping
    case nothing
  }

  struct Claimed: Sendable {
    let source: Int
    let scope: LeaseQueue.Scope
    let limit: Int
    let result: Result<LeaseQueue.Claim, any Error>
  }

  struct Prepared: Sendable {
    let source: Int
    let runs: [Int]
    let result: Result<[Int64: Verdict], any Error>
  }

  enum Outcome: Sendable {
    case delivered
    /// Cut short, or kept waiting inside this process: it was no attempt.
    case notTried
    case failed(DeliveryFailure)
  }

  /// Rows of one claim that are sent one after the other.
  struct Run: Sendable {
    let source: Int
    /// Sent with nothing else in flight.
    let isSuspect: Bool
    /// The first is the next to be sent, or in flight.
    var rows: ArraySlice<LeasedRow>
    /// In flight, or about to be.
    var send: Send?
    var isSending = false
    var parkedAt: Instant?
    /// Slots that are taken for it.
    var slots: [Capacity.Key] = []
  }

  // MARK: Before a send

  /// Reads again what the next sends depend on. A send begins with this read: what was committed before it counts.
  func prepare(_ group: inout TaskGroup<Happening>) {
    let numbers = ready
    ready.removeAll()
    for (place, source) in sources.enumerated() {
      let mine = numbers.filter { runs[$0]?.source == place }
      let rows = mine.compactMap { runs[$0]?.rows.first }
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
      for number in prepared.runs {
        free(number, after: nil)
        ready.append(number)
      }
    case .success(let verdicts):
      prepareFailures = 0
      for number in prepared.runs {
        guard let run = runs[number], let row = run.rows.first else { continue }
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
      case .withdrawn:
        acknowledgements[run.source].finish(row)
        advance(number)
      // Another worker has it, or it was deleted: the rows behind it are not this worker's to send either.
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
    // The device may have another address than before.
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
        // It is unknown whether a send that is cut short arrived: it is sent again.
        if Task.isCancelled { return .sent(run: number, after: .now - now, .notTried) }
        let failure = DeliveryFailure(error)
        return .sent(run: number, after: .now - now, failure.isLocal ? .notTried : .failed(failure))
      }
    }
  }

  // MARK: Waiting for a slot

  /// Keeps a run that finds no slot for a moment. If rows wait already for the same slots, it is given back at once.
  private func park(_ number: Int, _ send: Send, _ mode: Mode, _ now: Instant) {
    runs[number]?.send = send
    if mode == .untilStopped, capacity.isQueued(send.keys, now: now) { return giveBack(number, now) }
    if runs[number]?.parkedAt == nil { runs[number]?.parkedAt = now }
    parked.append(number)
  }

  /// Gives parked runs the slots that are free by now, and gives back those that have waited for too long: they would keep
  /// this worker from claiming rows that it can send.
  func serveParked(_ mode: Mode, _ now: Instant, _ group: inout TaskGroup<Happening>) {
    guard !parked.isEmpty else { return }
    let waiting = parked
    parked.removeAll()
    var nextDeadline: Instant?
    for number in waiting {
      guard let run = runs[number], let send = run.send else { continue }
      if capacity.hasRoom(for: send.keys) {
        capacity.take(send.keys)
        runs[number]?.slots = send.keys
        runs[number]?.parkedAt = nil
        ready.append(number)
      } else if mode == .untilStopped, let since = run.parkedAt, now >= since + Self.longestLocalWait {
        giveBack(number, now)
      } else {
        parked.append(number)
        if let since = run.parkedAt {
          nextDeadline = min(nextDeadline ?? .now + Self.longestLocalWait, since + Self.longestLocalWait)
        }
      }
    }
    if mode == .untilStopped, let nextDeadline { _ = isTime(nextDeadline, now, &group) }
  }

  /// Gives a run back that may expect its turn later.
  private func giveBack(_ number: Int, _ now: Instant) {
    guard let run = runs[number], let row = run.rows.first, let send = run.send else { return }
    acknowledgements[run.source].postpone(row, by: capacity.wait(for: send.keys, now: now))
    drop(number, from: 1)
  }

  /// Gives a run back whose host does not answer.
  private func leaveAlone(_ number: Int, _ row: LeasedRow, until: Instant, _ now: Instant) {
    guard let run = runs[number] else { return }
    if isOver(row, run) {
      end(number, row, DeliveryFailure(description: "the webhook's host does not answer"))
    } else {
      let wait = (until - now) / .seconds(1)
      acknowledgements[run.source].postpone(row, by: wait + Double.random(in: 0...max(1, wait / 4)))
      drop(number, from: 1)
    }
  }

  /// Gives back all that is not in flight.
  func releaseIdle() {
    let waiting = ready + parked
    ready.removeAll()
    parked.removeAll()
    for number in waiting {
      guard let run = runs[number] else { continue }
      if run.isSuspect, !isStopping {
        ready.append(number)
      } else {
        free(number, after: nil)
        drop(number, from: 0)
      }
    }
  }

  /// Ends a run, and gives back its rows but for the first ones, whose fate is decided.
  private func drop(_ number: Int, from count: Int) {
    guard let run = runs.removeValue(forKey: number) else { return }
    acknowledgements[run.source].release(run.rows.dropFirst(count))
  }

  private func free(_ number: Int, after time: Duration?) {
    guard let slots = runs[number]?.slots, !slots.isEmpty else { return }
    capacity.free(slots, after: time)
    runs[number]?.slots = []
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

  private func note(_ outcome: Outcome, of host: String?) {
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

  /// Ends an attempt that failed.
  private func end(_ number: Int, _ row: LeasedRow, _ failure: DeliveryFailure) {
    guard let run = runs[number] else { return }
    let table = sources[run.source].queue.table
    logger.warning("not delivered", metadata: ["table": "\(table)", "row": "\(row.id)", "error": "\(failure)"])
    if failure.remedy == .forgettingTheDevice, let device = run.send?.device {
      // The rows go with the device, unless it has another token by now.
      gone.append(device)
      return drop(number, from: 0)
    }
    switch failure.remedy {
    case .later(let seconds) where !isOver(row, run):
      let delay = Backoff.delay(after: row.attempts, notBefore: seconds)
      acknowledgements[run.source].retry(row, after: delay, because: failure.description)
      drop(number, from: 1)
    case .later, .none, .forgettingTheDevice:
      acknowledgements[run.source].bury(row, because: failure.description)
      logger.error(
        "dead letter", metadata: ["table": "\(table)", "row": "\(row.id)", "attempts": "\(row.attempts + 1)"])
      advance(number)
    }
  }

  private func isOver(_ row: LeasedRow, _ run: Run) -> Bool {
    guard let createdAt = row.createdAt else { return true }
    return createdAt < Timestamp.now().adding(seconds: -sources[run.source].patience)
  }

  /// Goes on with the next row of a run.
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

  // MARK: Acknowledging

  struct Written: Sendable {
    let acknowledgements: [Acknowledgements]
    let gone: [Device]
  }

  /// Writes all that has come together since the last time. Also when the task is cancelled: it would be sent again.
  func write(_ group: inout TaskGroup<Happening>) {
    isWriting = true
    let written = Written(acknowledgements: acknowledgements, gone: gone)
    for place in sources.indices { unwritten[place] = acknowledgements[place].rows }
    acknowledgements = sources.map { _ in Acknowledgements() }
    gone = []
    let (queues, database) = (sources.map(\.queue), database)
    group.addTask {
      let writing = Task { try await written.write(queues, in: database) }
      switch await writing.result {
      case .success: return .written(written, failure: nil)
      case .failure(let error): return .written(written, failure: error)
      }
    }
  }

  func settle(_ written: Written, _ failure: (any Error)?) {
    isWriting = false
    for place in sources.indices { unwritten[place] = [] }
    guard let failure else {
      writeFailures = 0
      return
    }
    writeFailures += 1
    logger.warning("acknowledgements cannot be written", metadata: ["error": "\(failure)"])
    // The worker that takes the rows over sends them again.
    if isCutShort {
      acknowledgements = sources.map { _ in Acknowledgements() }
      gone = []
      return
    }
    writeAt = .now + min(.seconds(2), .milliseconds(50) * (1 << min(writeFailures, 6)))
    for place in sources.indices {
      var again = written.acknowledgements[place]
      again.append(acknowledgements[place])
      acknowledgements[place] = again
    }
    gone = written.gone + gone
  }
}

extension Dispatcher.Written {
  fileprivate func write(_ queues: [LeaseQueue], in database: Database) async throws {
    // With their devices, rows go that would be sent again once they are given back. A device that has another token by
    // now is kept.
    if !gone.isEmpty {
      let these: SQL = "SELECT * FROM unnest(\(gone.map(\.id)), \(gone.map(\.token)))"
      try await database.batch(LeaseQueue.byIndex, Device.forgetting(where: "(id, token) IN (\(these))"))
    }
    let statements = zip(queues, acknowledgements).flatMap { $1.statements(for: $0) }
    guard !statements.isEmpty else { return }
    _ = try await database.transactionWithAnswers(repeating: true) { transaction in
      transaction.atCommit(LeaseQueue.byIndex)
      for statement in statements { transaction.atCommit(statement) }
    }
  }
}
