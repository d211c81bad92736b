import Foundation

@testable import App

/// Checks the commands of a ``DeliveryState`` against what it promises. See ``DeliveryWorld``.
struct DeliveryLedger {
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  struct Lease: Hashable {
    let id: Int64
    let token: UUID

    init(_ lease: LeasedRow.Lease) { (id, token) = (lease.id, lease.token) }
  }

  private static let queues = 2

  let concurrency: Int
  private let mode: DeliveryState.Mode
  /// All events and commands, if the order is traced.
  private(set) var trace: [String] = []
  private let isTraced: Bool
  /// How many sends there were, and how many leases were lost, so that a test can tell that something has happened.
  private(set) var sends = 0
  private(set) var lost = 0
  private(set) var stops = 0
  /// The most rows of one queue that were leased at once.
  private(set) var mostHeld = 0

  // What one worker knows.
  /// The leases whose end the worker has not seen.
  private var held: Set<Lease> = []
  /// The leases that it must no longer write about.
  private var over: Set<Lease> = []
  /// All leases that it has been given.
  private var told: Set<Lease> = []
  private var latest: [Int64: UUID] = [:]
  /// Rows whose deletion it may write.
  private var finished: Set<Int64> = []
  /// Rows that it has sent and must not send again, as long as no one else has had them.
  private var delivered: Set<Int64> = []
  /// Rows that those behind them need not wait for.
  private var settled: Set<Int64> = []
  private var discarded: Set<Int64> = []
  private var failed: Set<Int64> = []
  private var suspects: Set<Int64> = []
  /// The rows that others have touched.
  private var touched: Set<Int64> = []
  private var touchedChains: Set<Int> = []
  private var inFlight: [Int: (row: Int64, keys: [Capacity.Key])] = [:]
  private var permitted: [Int: Int64] = [:]
  private var beingWritten: Set<Lease> = []
  private var claimScopes: [Int: LeaseQueue.Scope] = [:]
  private var queueOf: [Int64: Int] = [:]
  /// The run with which each lease came, as long as no outcome of it was written.
  private var runOf: [Lease: Int] = [:]
  private var runs = 0
  /// Whether no row was claimed again before an outcome of it was written: its run may have kept it.
  private var runsAreKnown = true
  private var timetable: DeliveryTimetable
  private var now: Duration

  init(_ mode: DeliveryState.Mode, concurrency: Int, isTraced: Bool, at start: Duration = .zero) {
    (self.mode, self.concurrency, self.isTraced) = (mode, concurrency, isTraced)
    timetable = DeliveryTimetable(mode, queues: Self.queues, at: start)
    now = start
  }

  /// The maximum number of runs of one queue.
  private var maximumRuns: Int { max(16, 4 * concurrency) }

  func violation(_ text: String) -> Violation {
    Violation(description: trace.joined(separator: "\n") + (isTraced ? "\n" : "") + text)
  }

  private func require(_ condition: Bool, _ text: @autoclosure () -> String) throws(Violation) {
    if !condition { throw violation(text()) }
  }

  func row(inFlight run: Int) -> Int64? { inFlight[run]?.row }

  mutating func beginWorker(_ mode: DeliveryState.Mode, at time: Duration) {
    var next = DeliveryLedger(mode, concurrency: concurrency, isTraced: isTraced, at: time)
    (next.trace, next.sends, next.lost, next.stops, next.mostHeld) = (trace, sends, lost, stops, mostHeld)
    self = next
    if isTraced { trace.append("a new worker") }
  }

  /// Another worker has had the row, or this one got it without knowing.
  mutating func loseControl(of row: DeliveryWorld.Row) {
    delivered.remove(row.id)
    touched.insert(row.id)
    touchedChains.insert(row.chain)
    if isTraced { trace.append("row \(row.id) is touched by others") }
  }

  // MARK: Time

  /// Time passes, and the worker has done all that it wanted to do.
  func checkPunctuality(at time: Duration) throws(Violation) {
    if let late = timetable.late(at: time) { throw violation("\(time): \(late)") }
  }

  /// The machine has stalled: nothing that the worker does now is late.
  mutating func stall(until time: Duration) {
    timetable.forgive(until: time)
    if isTraced { trace.append("\(time): the machine has stalled") }
  }

  // MARK: Events

  mutating func note(_ event: DeliveryState.Event, at time: Duration) throws(Violation) {
    if isTraced { trace.append("\(time): \(Self.text(event))") }
    now = time
    permitted = [:]
    timetable.note(event, at: now)
    follow(event)
    for queue in 0..<Self.queues {
      let count = held.count { queueOf[$0.id] == queue }
      mostHeld = max(mostHeld, count)
      timetable.note(holdsFew: count <= maximumRuns / 2, of: queue, at: now)
      try require(count <= maximumHeld(of: queue), "\(count) rows of queue \(queue) are leased")
    }
    noteSuspects()
  }

  /// A run that was claimed again without its outcome keeps what it was.
  private mutating func noteSuspects() {
    timetable.note(holdsSuspect: !runsAreKnown || held.contains { suspects.contains($0.id) }, at: now)
  }

  /// The rows of runs, and those that cannot be written.
  private func maximumHeld(of queue: Int) -> Int {
    let runLength = queue == 0 ? DeliveryWorld.runLength + 1 : 1
    return (maximumRuns + 1) * runLength + 4 * maximumRuns
  }

  private mutating func follow(_ event: DeliveryState.Event) {
    switch event {
    case .claimed(let queue, .success(let claim)):
      for run in claim.runs {
        runs += 1
        for row in run { take(row, of: queue, in: runs, isSuspect: claimScopes[queue] == .suspect) }
      }
    case .checked(let checks, .success(let verdicts)):
      for check in checks where latest[check.row.id] == check.row.lease.token {
        follow(verdicts[check.row.id], on: check)
      }
    case .sent(let run, _, let outcome): end(run, outcome)
    case .written(let failure):
      if failure == nil {
        held.subtract(beingWritten)
        over.formUnion(beingWritten)
      }
    case .stopRequested, .cancelled: stops += 1
    case .started, .claimed, .checked, .renewed, .alarm, .woken: break
    }
  }

  private mutating func take(_ row: LeasedRow, of queue: Int, in run: Int, isSuspect: Bool) {
    let lease = Lease(row.lease)
    runOf[lease] = run
    if let token = latest[row.id] {
      let earlier = Lease(LeasedRow.Lease(id: row.id, token: token))
      held.remove(earlier)
      if runOf.removeValue(forKey: earlier) != nil { runsAreKnown = false }
    }
    queueOf[row.id] = queue
    latest[row.id] = row.lease.token
    told.insert(lease)
    held.insert(lease)
    if isSuspect { suspects.insert(row.id) } else { suspects.remove(row.id) }
  }

  private mutating func follow(_ verdict: Dispatcher.Verdict?, on check: DeliveryState.Check) {
    switch verdict {
    case .send: permitted[check.run] = check.row.id
    case .withdrawn:
      finished.insert(check.row.id)
      settled.insert(check.row.id)
    case .refused: failed.insert(check.row.id)
    case .later: break
    case nil:
      lost += 1
      held.remove(Lease(check.row.lease))
      runOf[Lease(check.row.lease)] = nil
      over.insert(Lease(check.row.lease))
    }
  }

  private mutating func end(_ run: Int, _ outcome: DeliveryState.Outcome) {
    guard let row = inFlight.removeValue(forKey: run)?.row else { return }
    switch outcome {
    case .delivered:
      finished.insert(row)
      if !touched.contains(row) { delivered.insert(row) }
      settled.insert(row)
    case .failed: failed.insert(row)
    case .notTried: break
    }
  }

  // MARK: Commands

  mutating func check(
    _ command: DeliveryState.Command, after event: DeliveryState.Event, _ rows: [Int64: DeliveryWorld.Row]
  ) throws(Violation) {
    if isTraced { trace.append("    \(Self.text(command))") }
    if case .write = command { try require(!timetable.isWriting, "two writes at once") }
    if case .claim(let queue, let scope, let limit) = command { try checkClaim(of: queue, scope, limit) }
    let sent: Int64? = if case .send(let run, _) = command { permitted[run] } else { nil }
    if let early = timetable.note(command, sending: sent, at: now) { throw violation(early) }
    noteSuspects()
    switch command {
    case .claim: break
    case .check: try require(!timetable.isStopping, "a stopping worker reads rows")
    case .send(let run, let send): try checkSend(run, send, rows)
    case .write(let outcomes, _): try checkWrite(outcomes)
    case .renew(let leases):
      let renewed = Set(leases.joined().map(Lease.init))
      try require(held.isSubset(of: renewed), "leases are not renewed: \(held.subtracting(renewed).map(\.id))")
      try require(renewed.isSubset(of: told), "leases of others are renewed")
    case .logDeadLetter(_, let row):
      try require(failed.contains(row.id), "row \(row.id) is a dead letter without a failure")
      settled.insert(row.id)
      discarded.insert(row.id)
    case .setAlarm, .cutShort, .logFailure: break
    }
  }

  private mutating func checkClaim(of queue: Int, _ scope: LeaseQueue.Scope, _ limit: Int) throws(Violation) {
    try require(!timetable.isStopping, "a stopping worker claims")
    try require(limit > 0, "a claim of nothing")
    claimScopes[queue] = scope
    // Otherwise, some runs may be over and their outcomes wait for another write.
    guard mode == .untilStopped, runsAreKnown, !timetable.isWriting, timetable.writeFailures == 0 else { return }
    let count = Set(runOf.filter { queueOf[$0.key.id] == queue }.values).count
    try require(
      count <= maximumRuns / 2 && count + limit <= maximumRuns,
      "\(count) runs of queue \(queue) are held, and \(limit) more are claimed")
  }

  private mutating func checkSend(
    _ run: Int, _ send: Dispatcher.Send, _ rows: [Int64: DeliveryWorld.Row]
  ) throws(Violation) {
    sends += 1
    guard let id = permitted[run] else { throw violation("run \(run) is sent without having been read again") }
    try require(!timetable.isStopping, "a stopping worker sends row \(id)")
    try require(inFlight[run] == nil && !inFlight.values.contains { $0.row == id }, "row \(id) is sent twice at once")
    try require(!delivered.contains(id), "row \(id) is sent again after it was delivered")
    if suspects.contains(id) {
      try require(!inFlight.values.contains { suspects.contains($0.row) }, "two suspects are in flight")
    }
    for key in send.keys {
      let count = inFlight.values.count { $0.keys.contains(key) }
      try require(count < limit(of: key), "\(key) has \(count) sends in flight, and one more begins")
    }
    if let row = rows[id], !touchedChains.contains(row.chain) {
      let older = rows.values.filter {
        $0.queue == row.queue && $0.chain == row.chain && $0.id < id && !$0.isDead && !settled.contains($0.id)
      }
      try require(older.isEmpty, "row \(id) is sent before \(older.map(\.id))")
    }
    inFlight[run] = (id, send.keys)
  }

  private func limit(of key: Capacity.Key) -> Int {
    switch key {
    case .channel(.mail), .channel(.apple): min(concurrency, 8)
    case .channel: concurrency
    case .recipient: 4
    case .host: 8
    }
  }

  private mutating func checkWrite(_ outcomes: [Acknowledgements]) throws(Violation) {
    beingWritten = []
    for lease in outcomes.flatMap(\.leases).map(Lease.init) {
      try require(beingWritten.insert(lease).inserted, "row \(lease.id) has two outcomes")
      try require(told.contains(lease), "row \(lease.id) is written with another's lease")
      try require(!over.contains(lease), "row \(lease.id) is written after its lease was lost or its outcome written")
      runOf[lease] = nil
    }
    for lease in outcomes.flatMap(\.done) {
      try require(finished.contains(lease.id), "row \(lease.id) is deleted without having been sent")
    }
    for returned in outcomes.flatMap(\.returned) {
      let id = returned.lease.id
      try require(
        !delivered.contains(id) || latest[id] != returned.lease.token, "row \(id) was delivered, and is given back")
      try require(returned.isDead == false || discarded.contains(id), "row \(id) dies without a reason")
      try require(!returned.isAttempt || failed.contains(id), "row \(id) counts an attempt without one")
    }
  }

  /// At the end of a worker whose writes have succeeded.
  func checkEnd() throws(Violation) {
    try require(held.isEmpty, "rows are neither written nor given back: \(held.map(\.id).sorted())")
    try require(inFlight.isEmpty, "sends are in flight after the end: \(inFlight.values.map(\.row))")
  }

  // MARK: Trace

  private static func text(_ event: DeliveryState.Event) -> String {
    switch event {
    case .claimed(let queue, .success(let claim)):
      "claimed from \(queue): \(claim.runs.map { $0.map(\.id) }), orphans \(claim.orphans), dead \(claim.dead.map(\.id)), suspects \(claim.hasSuspects)"
    case .checked(let checks, .success(let verdicts)):
      "checked: \(checks.map { "run \($0.run) row \($0.row.id) \(verdicts[$0.row.id].map(text) ?? "lost")" })"
    case .sent(let run, _, let outcome): "sent run \(run): \(outcome)"
    default: "\(event)"
    }
  }

  private static func text(_ verdict: Dispatcher.Verdict) -> String {
    if case .send = verdict { "send" } else { "\(verdict)" }
  }

  private static func text(_ command: DeliveryState.Command) -> String {
    switch command {
    case .check(let queue, let checks): "check \(queue): \(checks.map { "run \($0.run) row \($0.row.id)" })"
    case .send(let run, let send): "send run \(run) by \(send.keys)"
    case .write(let outcomes, let gone):
      "write \(outcomes.map { "done \($0.done.map(\.id)) returned \($0.returned.map { "\($0.lease.id)\($0.isDead ? " dead" : "")" })" }), forget \(gone.map(\.token))"
    case .renew(let leases): "renew \(leases.map { $0.map(\.id) })"
    default: "\(command)"
    }
  }
}
