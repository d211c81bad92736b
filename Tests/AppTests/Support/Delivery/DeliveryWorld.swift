import CLibpq
import Foundation
import TestSupport

@testable import App
@testable import Postgres

/// A ``DeliveryState`` in a world where anything happens in any order: a seed decides. The tables are in memory, with
/// the rules of ``LeaseQueue``. Statements fail, before or after they have had their effect. Sends take any time. Other
/// workers take leases, the machine stalls until leases expire, and workers are killed.
///
/// ``ledger`` checks each command. The same seed always gives the same order.
struct DeliveryWorld {
  typealias Instant = ContinuousClock.Instant

  struct Row {
    let id: Int64
    let queue: Int
    /// A device and subject. In the second queue, each row stands alone.
    let chain: Int
    let createdAt: Timestamp
    var dueAt: Instant
    var attempts = 0
    var deaths = 0
    var isDead = false
    var lease: UUID?
    var owner = Owner.none
    var leasedUntil: Instant
  }

  enum Owner: Equatable {
    case none
    case another
    /// The tested workers are numbered. Only the last one lives.
    case worker(Int)
  }

  /// A command that is being carried out.
  private struct Operation {
    let command: DeliveryState.Command
    let begunAt: Instant
    /// The result, if it has had its effect.
    var event: DeliveryState.Event?
    /// A send that ends only when it is cut short.
    var hangs = false
  }

  /// The ways to fail.
  struct Troubles: OptionSet {
    let rawValue: Int

    /// Statements and sends fail.
    static let failures = Troubles(rawValue: 1)
    /// The machine stalls, and other workers take leases.
    static let lostLeases = Troubles(rawValue: 2)
    static let kills = Troubles(rawValue: 4)
    /// No write succeeds.
    static let failingWrites = Troubles(rawValue: 8)
    static let all: Troubles = [.failures, .lostLeases, .kills]
  }

  struct Failure: Error {}

  private static let start = ContinuousClock.now
  private static let midnight = Timestamp(microseconds: 1_800_000_000_000_000)
  private static let patience = 86_400
  private static let users = [User.ID.new(), User.ID.new()]
  private static let lease = Duration.seconds(LeaseQueue.leaseSeconds)
  static let runLength = 4

  let seed: UInt64
  private(set) var ledger: DeliveryLedger
  private(set) var rows: [Int64: Row] = [:]
  /// A row that kills each worker that sends it.
  private(set) var killer: Int64?
  private var random: SeededRandom
  private var troubles: Troubles
  private let concurrency: Int
  private let isLoaded: Bool
  let mode: DeliveryState.Mode
  private var workersMode: DeliveryState.Mode
  private var now = Self.start
  private var worker = 1
  private var state: DeliveryState
  private var operations: [Operation] = []
  private var alarms: [Instant] = []
  private var isCutShort = false
  private var lastID: Int64 = 0
  var enqueued: Int { Int(lastID) }
  private var lastToken: UInt64 = 0

  /// - Parameter load: how many rows there are at first; nil for a few.
  init(
    seed: UInt64, _ troubles: Troubles = .all, hasKiller: Bool = false, load: Int? = nil, isTraced: Bool = false
  ) {
    self.seed = seed
    self.troubles = troubles
    random = SeededRandom(seed: seed)
    isLoaded = load != nil
    concurrency = Int.random(in: 1...6, using: &random)
    let modes: [DeliveryState.Mode] = [.oneRound, .untilNothingIsDue, .untilStopped, .untilStopped]
    mode = hasKiller || isLoaded ? .untilStopped : modes[Int.random(in: modes.indices, using: &random)]
    workersMode = mode
    ledger = DeliveryLedger(mode, concurrency: concurrency, isTraced: isTraced)
    state = Self.newState(mode, concurrency, at: now, &random)
    enqueue(load ?? Int.random(in: 1...24, using: &random))
    if hasKiller { killer = Int64.random(in: 1...lastID, using: &random) }
  }

  private static func newState(
    _ mode: DeliveryState.Mode, _ concurrency: Int, at now: Instant, _ random: inout SeededRandom
  ) -> DeliveryState {
    let policies = [patience, patience * 7].map { DeliveryState.Policy(patience: $0) }
    return DeliveryState(
      policies, mode: mode, concurrency: concurrency, at: moment(now), random: SeededRandom(seed: random.next()))
  }

  private static func moment(_ now: Instant) -> DeliveryState.Moment {
    let time = midnight.microseconds + Int64((now - start) / .microseconds(1))
    return DeliveryState.Moment(instant: now, timestamp: Timestamp(microseconds: time))
  }

  // MARK: The order

  /// Lets this many things happen, and stops the worker. Then a last worker, without troubles, must empty the tables.
  mutating func run(steps: Int) throws(DeliveryLedger.Violation) {
    try handle(.started)
    for _ in 0..<steps {
      if state.isDone { try startAgain() }
      try step()
    }
    // A killer would only be met again.
    if killer == nil { try stop() }
    try finish()
  }

  private mutating func step() throws(DeliveryLedger.Violation) {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<60: try proceed()
    case 60..<75: try pass(.milliseconds(Int.random(in: 0...60, using: &random)))
    case 75..<80: try pass(.milliseconds(Int.random(in: 0...900, using: &random)))
    case 80..<84: enqueue(Int.random(in: 1...4, using: &random))
    case 84..<88: try handle(.woken)
    case 88..<91: if troubles.contains(.lostLeases) { try stall(.seconds(5)) }
    case 91..<97: if troubles.contains(.lostLeases) { meddle() }
    case 97: if troubles.contains(.kills) { try kill() }
    default: try fireAlarms()
    }
  }

  /// Ends one of the operations in flight, if there is any.
  private mutating func proceed() throws(DeliveryLedger.Violation) {
    guard !operations.isEmpty else { return try pass(.milliseconds(10)) }
    let operation = operations.remove(at: Int.random(in: operations.indices, using: &random))
    guard operation.event == nil else { return try handle(operation) }
    if case .send(let run, _) = operation.command {
      guard !operation.hangs || isCutShort else { return operations.append(operation) }
      if ledger.row(inFlight: run) == killer, killer != nil { return try kill() }
      return try handle(operation, outcome(of: operation))
    }
    let luck = troubles.contains(.failures) ? Int.random(in: 0..<20, using: &random) : 20
    // A write is not cut short, and a claim only if it was not sent.
    let mayBeCut =
      switch operation.command {
      case .write: false
      case .claim: isCutShort && Bool.random(using: &random)
      default: true
      }
    let isRefused = if case .write = operation.command { troubles.contains(.failingWrites) } else { false }
    if luck < 2 || isRefused || isCutShort && mayBeCut {
      // Half of the failed statements have had their effect.
      if luck == 0 { _ = effect(of: operation.command, isSeen: false) }
      return try handle(operation, failure(of: operation.command))
    }
    var later = operation
    later.event = effect(of: operation.command, isSeen: true)
    if luck < 5 { operations.append(later) } else { try handle(later) }
  }

  private mutating func handle(
    _ operation: Operation, _ event: DeliveryState.Event? = nil
  ) throws(DeliveryLedger.Violation) {
    if let event = event ?? operation.event { try handle(event) }
  }

  private mutating func handle(_ event: DeliveryState.Event) throws(DeliveryLedger.Violation) {
    try ledger.note(event, at: now - Self.start)
    for command in state.handle(event, at: Self.moment(now)) {
      try ledger.check(command, after: event, rows)
      switch command {
      case .setAlarm(let time): alarms.append(time)
      case .cutShort: isCutShort = true
      case .logFailure, .logDeadLetter: break
      case .send:
        let hangs = troubles.contains(.failures) && Int.random(in: 0..<12, using: &random) == 0
        operations.append(Operation(command: command, begunAt: now, hangs: hangs))
      case .claim, .check, .write, .renew: operations.append(Operation(command: command, begunAt: now))
      }
    }
  }

  /// Time passes from alarm to alarm.
  private mutating func pass(_ time: Duration) throws(DeliveryLedger.Violation) {
    let end = now + time
    while !state.isDone, let next = alarms.min(), next < end {
      now = max(now, next)
      try checkPunctuality()
      try fireAlarms()
    }
    now = end
    if !state.isDone { try checkPunctuality() }
    try fireAlarms()
  }

  private func checkPunctuality() throws(DeliveryLedger.Violation) { try ledger.checkPunctuality(at: now - Self.start) }

  /// Nothing runs for so long, and then everything that is due.
  private mutating func stall(_ time: Duration) throws(DeliveryLedger.Violation) {
    now += time
    ledger.stall(until: now - Self.start)
    try fireAlarms()
  }

  private mutating func fireAlarms() throws(DeliveryLedger.Violation) {
    let due = alarms.filter { $0 <= now || isCutShort }.shuffled(using: &random)
    alarms.removeAll { $0 <= now || isCutShort }
    for time in due { try handle(.alarm(time)) }
  }

  // MARK: Ends

  /// The worker must end in time, whatever it is doing, and leave nothing leased that it knows of.
  private mutating func stop() throws(DeliveryLedger.Violation) {
    // One round ends soon anyway, and is not asked to.
    try handle(mode != .oneRound && Bool.random(using: &random) ? .stopRequested : .cancelled)
    let latest = now + DeliveryState.grace + .seconds(2)
    while !state.isDone {
      if operations.contains(where: { !$0.hangs || isCutShort }) {
        try proceed()
        try pass(.milliseconds(Int.random(in: 0...5, using: &random)))
      } else if let next = alarms.min() {
        try pass(max(next - now, .zero))
      } else {
        throw ledger.violation("a worker waits for nothing")
      }
      guard now < latest else { throw ledger.violation("a worker does not stop") }
    }
    if state.hasGivenBackAll { try ledger.checkEnd() }
  }

  /// After an end without a stop.
  private mutating func startAgain() throws(DeliveryLedger.Violation) {
    if state.hasGivenBackAll { try ledger.checkEnd() }
    try replaceWorker()
  }

  /// kill -9: statements that are on their way may still have their effects.
  private mutating func kill() throws(DeliveryLedger.Violation) {
    for operation in operations where operation.event == nil {
      if Bool.random(using: &random) { _ = effect(of: operation.command, isSeen: false) }
    }
    try replaceWorker()
  }

  private mutating func replaceWorker() throws(DeliveryLedger.Violation) {
    worker += 1
    (operations, alarms, isCutShort) = ([], [], false)
    state = Self.newState(workersMode, concurrency, at: now, &random)
    ledger.beginWorker(workersMode, at: now - Self.start)
    try handle(.started)
  }

  private mutating func finish() throws(DeliveryLedger.Violation) {
    troubles = []
    for id in rows.keys where rows[id]?.owner == .another { release(id) }
    try replaceWorker()
    for _ in 0..<3000 {
      guard rows.values.contains(where: { !$0.isDead }) else { return }
      if operations.isEmpty || state.isDone {
        for (id, row) in rows { rows[id]?.dueAt = min(row.dueAt, now) }
        try pass(.milliseconds(1500))
      }
      // One round sends no suspects.
      if mode == .oneRound, rows.values.contains(where: isSuspect) { workersMode = .untilNothingIsDue }
      if state.isDone { try startAgain() } else { try proceed() }
    }
    throw ledger.violation("rows are left: \(rows.values.filter { !$0.isDead }.map(\.id).sorted())")
  }

  // MARK: Others

  private mutating func enqueue(_ count: Int) {
    for _ in 0..<count {
      lastID += 1
      // Under load, most rows are in the second queue, where there is a run for each.
      let queue = (Int.random(in: 0..<4, using: &random) == 0) != isLoaded ? 1 : 0
      let chain = queue == 1 ? -Int(lastID) : Int.random(in: 0..<8, using: &random)
      rows[lastID] = Row(
        id: lastID, queue: queue, chain: chain, createdAt: Self.moment(now).timestamp, dueAt: now, leasedUntil: now)
      // Where workers are killed, some rows have been in flight before.
      if troubles.contains(.kills), Int.random(in: 0..<8, using: &random) == 0 { rows[lastID]?.deaths = 2 }
    }
  }

  /// Another worker, or a change, touches a row.
  private mutating func meddle() {
    guard let id = rows.keys.sorted().randomElement(using: &random), let row = rows[id], !row.isDead else { return }
    ledger.loseControl(of: row)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: rows[id] = nil
    case 1: release(id)
    default:
      guard row.lease != nil || isOldest(row) else { return }
      let token = newToken()
      rows[id]?.lease = token
      rows[id]?.owner = .another
      let isExpired = Bool.random(using: &random)
      rows[id]?.leasedUntil = now + (isExpired ? .zero : Self.lease)
    }
  }

  private mutating func release(_ id: Int64) {
    rows[id]?.lease = nil
    rows[id]?.owner = Owner.none
  }

  private mutating func newToken() -> UUID {
    lastToken += 1
    return withUnsafeBytes(of: (lastToken.bigEndian, UInt64(0))) { bytes in
      UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }
  }

  // MARK: Effects

  /// - Parameter isSeen: whether the worker gets the result.
  private mutating func effect(of command: DeliveryState.Command, isSeen: Bool) -> DeliveryState.Event? {
    switch command {
    case .claim(let queue, let scope, let limit):
      let claim = claim(queue, scope, limit)
      if !isSeen {
        for row in claim.runs.joined() { if let row = rows[row.id] { ledger.loseControl(of: row) } }
      }
      return .claimed(queue: queue, .success(claim))
    case .check(_, let checks): return .checked(checks, .success(verdicts(on: checks)))
    case .write(let outcomes, let gone):
      write(outcomes, gone)
      return .written(failure: nil)
    case .renew(let leases):
      for lease in leases.joined() where rows[lease.id]?.lease == lease.token {
        rows[lease.id]?.leasedUntil = now + Self.lease
      }
      return .renewed(failure: nil)
    case .send, .setAlarm, .cutShort, .logFailure, .logDeadLetter: return nil
    }
  }

  private func failure(of command: DeliveryState.Command) -> DeliveryState.Event? {
    switch command {
    case .claim(let queue, _, _): .claimed(queue: queue, .failure(Failure()))
    case .check(_, let checks): .checked(checks, .failure(Failure()))
    case .write: .written(failure: Failure())
    case .renew: .renewed(failure: Failure())
    case .send, .setAlarm, .cutShort, .logFailure, .logDeadLetter: nil
    }
  }

  private mutating func outcome(of operation: Operation) -> DeliveryState.Event? {
    guard case .send(let run, _) = operation.command else { return nil }
    let luck = troubles.contains(.failures) ? Int.random(in: 0..<20, using: &random) : 20
    let outcome: DeliveryState.Outcome =
      switch luck {
      case 0: .notTried
      case 1, 2: .failed(DeliveryFailure(description: "down"))
      case 3: .failed(DeliveryFailure(description: "slow", remedy: .later(seconds: 60), isTimeout: true))
      case 4: .failed(DeliveryFailure(description: "refused", remedy: .none))
      case 5: .failed(DeliveryFailure(description: "gone", remedy: .forgettingTheDevice))
      default: isCutShort && luck < 15 ? .notTried : .delivered
      }
    return .sent(run: run, after: now - operation.begunAt, outcome)
  }

  private mutating func verdicts(on checks: [DeliveryState.Check]) -> [Int64: Dispatcher.Verdict] {
    var verdicts: [Int64: Dispatcher.Verdict] = [:]
    for check in checks {
      guard let row = rows[check.row.id], row.lease == check.row.lease.token else { continue }
      let luck = troubles.contains(.failures) ? Int.random(in: 0..<20, using: &random) : 20
      verdicts[row.id] =
        switch luck {
        case 0: .withdrawn
        case 1: .later(seconds: 1)
        case 2: .refused(DeliveryFailure(description: "malformed", remedy: .none))
        default: .send(send(row))
        }
    }
    return verdicts
  }

  private func send(_ row: Row) -> Dispatcher.Send {
    if row.queue == 1 { return Dispatcher.Send(channel: .mail) {} }
    let device = Device(
      id: Device.ID(rawValue: Self.uuid(row.chain)), platform: .webhook, token: "\(row.chain)", environment: nil,
      topic: nil,
      registeredAt: Self.midnight, sealedSecrets: [])
    return Dispatcher.Send(
      channel: row.chain % 3 == 0 ? .log : .webhook, recipient: Self.users[row.chain % 2], device: device,
      host: row.chain % 3 == 0 ? nil : "host\(row.chain % 3)"
    ) {}
  }

  private static func uuid(_ number: Int) -> UUID {
    withUnsafeBytes(of: (UInt64(0), UInt64(number).bigEndian)) { bytes in
      UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
    }
  }

  private mutating func write(_ outcomes: [Acknowledgements], _ gone: [Device]) {
    for device in gone {
      for (id, row) in rows where row.queue == 0 && "\(row.chain)" == device.token { rows[id] = nil }
    }
    for outcomes in outcomes {
      for lease in outcomes.done where rows[lease.id]?.lease == lease.token { rows[lease.id] = nil }
      for returned in outcomes.returned where rows[returned.lease.id]?.lease == returned.lease.token {
        let id = returned.lease.id
        release(id)
        rows[id]?.attempts += returned.isAttempt ? 1 : 0
        if returned.isAttempt { rows[id]?.deaths = 0 }
        if let delay = returned.delay { rows[id]?.dueAt = now + .seconds(delay) }
        rows[id]?.isDead = returned.isDead
      }
    }
  }

  // MARK: Claims

  /// The same as ``LeaseQueue/claiming(_:atMost:for:lease:)``.
  private mutating func claim(_ queue: Int, _ scope: LeaseQueue.Scope, _ limit: Int) -> LeaseQueue.Claim {
    var claim = LeaseQueue.Claim()
    let token = newToken()
    let living = rows.values.filter { $0.queue == queue && !$0.isDead }.sorted { $0.id < $1.id }
    let due = living.filter { row in
      row.dueAt <= now && (scope != .recent || row.dueAt > now - .seconds(5))
        && isSuspect(row) == (scope == .suspect) && isFree(row) && isOldest(row)
    }
    .sorted { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }.prefix(limit)
    for head in due {
      let behind = living.filter { $0.chain == head.chain && $0.id > head.id }.prefix(Self.runLength)
        .prefix { $0.dueAt <= now && !isSuspect($0) && isFree($0) }
      let run = [head] + (scope == .suspect ? [] : behind)
      if head.lease != nil, !isAlive(head.owner) {
        claim.orphans += 1
        for row in run { release(row.id) }
        rows[head.id]?.deaths += 1
        if head.deaths + 1 >= LeaseQueue.maximumDeaths {
          rows[head.id]?.isDead = true
          claim.dead.append(
            LeasedRow(
              lease: LeasedRow.Lease(id: head.id, token: token), attempts: head.attempts, createdAt: head.createdAt,
              fields: .none))
        }
        continue
      }
      for row in run {
        rows[row.id]?.lease = token
        rows[row.id]?.owner = .worker(worker)
        rows[row.id]?.leasedUntil = now + Self.lease
      }
      claim.runs.append(
        run.map { row in
          LeasedRow(
            lease: LeasedRow.Lease(id: row.id, token: token), attempts: row.attempts, createdAt: row.createdAt,
            fields: .none)
        })
    }
    if scope == .all {
      claim.hasSuspects = living.contains { rows[$0.id].map { isSuspect($0) && isFree($0) && $0.dueAt <= now } == true }
    }
    return claim
  }

  private func isSuspect(_ row: Row) -> Bool { row.deaths >= 2 && !row.isDead }

  private func isFree(_ row: Row) -> Bool { row.lease == nil || row.leasedUntil <= now }

  private func isOldest(_ row: Row) -> Bool {
    row.queue == 1 || !rows.values.contains { $0.queue == 0 && $0.chain == row.chain && $0.id < row.id && !$0.isDead }
  }

  private func isAlive(_ owner: Owner) -> Bool {
    switch owner {
    case .none, .another: true
    case .worker(let number): number == worker
    }
  }
}

extension LeasedRow.Fields {
  /// Those of a row without columns. No decision reads any.
  static let none = LeasedRow.Fields(
    row: Row(result: ResultHandle(PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK)), index: 0))
}
