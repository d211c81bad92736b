import Foundation
import Postgres

/// Decides how a worker processes its queues: what to claim, send, write and give back, and when. It does nothing itself
/// and has no clock: ``handle(_:at:)`` takes what has happened, and returns what to do now. ``Dispatcher`` does it.
struct DeliveryState: Sendable {
  typealias Instant = ContinuousClock.Instant

  enum Mode: Sendable {
    case untilStopped
    /// Rounds, until one finds nothing.
    case untilNothingIsDue
    case oneRound
  }

  /// How long sends in flight may take to end after the worker is asked to stop. Then they are cut short and given back.
  static let grace = Duration.seconds(4)
  /// Short enough that a lease outlives some failed renewals.
  static let renewalInterval = Duration.seconds(1)
  private static let renewalPauseAfterFailure = Duration.milliseconds(250)
  /// How long a queue keeps its turn to send a suspect while another claim of it is in flight.
  static let longestTurn = Duration.seconds(1)
  /// How long a claimed row waits for a slot before it is given back.
  static let longestLocalWait = Duration.milliseconds(250)
  /// Reads of rows in flight at the same time, after which no further one begins.
  private static let maximumChecks = 2
  /// How many hosts that did not respond are remembered.
  private static let maximumCircuits = 10_000

  private struct Queue: Sendable {
    let patience: Int
    var polling: Polling
    var runs = 0
    var claimInFlight: (scope: LeaseQueue.Scope, limit: Int, since: Instant)?
    var lastScope: LeaseQueue.Scope?
    /// Whether it has claimed in this round.
    var hasClaimed = false
    /// Whether a suspect is due. See ``LeaseQueue/suspectDeaths``.
    var hasSuspects = false
  }

  /// Rows of one claim that are sent one after the other.
  private struct Run: Sendable {
    let queue: Int
    let isSuspect: Bool
    /// The first row is in flight or the next to be sent.
    var rows: ArraySlice<LeasedRow>
    /// In flight.
    var send: Dispatcher.Send?
    /// The slots that it occupies.
    var slots: [Capacity.Key] = []
  }

  /// A run whose first row waits for slots.
  private struct Parked: Sendable {
    let run: Int
    let slots: [Capacity.Key]
    let since: Instant
  }

  /// Spreads retries.
  private struct Jitter: RandomNumberGenerator, Sendable {
    var base: any RandomNumberGenerator & Sendable

    mutating func next() -> UInt64 { base.next() }
  }

  private let mode: Mode
  /// The maximum number of runs of one queue.
  private let maximumRuns: Int
  private var random: Jitter
  private var queues: [Queue]
  private var capacity: Capacity
  private var circuits: [String: Circuit] = [:]

  private var runs: [Int: Run] = [:]
  private var nextRun = 0
  /// Runs whose first row must be checked, in the order of their turns.
  private var ready: [Int] = []
  private var parked: [Parked] = []
  /// Whether a slot has become free since the parked runs were looked at.
  private var hasFreedSlot = false

  private var checks = 0
  private var checkFailures = 0
  private var checkAt: Instant
  private var outcomes: OutcomeLedger
  private var isRenewing = false
  private var renewAt: Instant

  private var lastSuspect: (queue: Int, row: Int64)?
  /// The queue that is asked first for the next suspect: the one after the queue that was asked last.
  private var suspectTurn = 0
  private var roundFoundSomething = false
  private var stopBy: Instant?
  private var isCutShort = false
  /// The error that stopped the work.
  private(set) var failure: (any Error)?

  /// The time of the event that is being handled, and what follows from it.
  private var now: Moment
  private var commands: [Command] = []
  private var nextAlarm: Instant?
  private var alarms: [Instant] = []

  /// The number of claimed runs.
  var claimed: Int { nextRun }
  private var isStopping: Bool { stopBy != nil }

  /// - Parameters:
  ///   - concurrency: the maximum number of sends in flight on each channel.
  ///   - random: spreads retries.
  init(
    _ policies: [Policy], mode: Mode, concurrency: Int, at now: Moment,
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.mode = mode
    self.random = Jitter(base: random)
    self.now = now
    maximumRuns = max(16, 4 * concurrency)
    queues = policies.map {
      Queue(patience: $0.patience, polling: Polling(longestPause: $0.longestPause, now: now.instant))
    }
    capacity = Capacity(perChannel: concurrency)
    outcomes = OutcomeLedger(queues: policies.count)
    (checkAt, renewAt) = (now.instant, now.instant)
  }

  mutating func handle(_ event: Event, at time: Moment) -> [Command] {
    now = time
    switch event {
    case .started: break
    case .claimed(let queue, let result): takeClaim(result, from: queue)
    case .checked(let checks, let result): takeVerdicts(result, on: checks)
    case .sent(let run, let time, let outcome): takeOutcome(outcome, of: run, after: time)
    case .written(let failure): takeWritten(failure)
    case .renewed(let failure): takeRenewed(failure)
    case .alarm(let time): alarms.removeAll { $0 == time }
    case .woken: for place in queues.indices { queues[place].polling.wake(at: now.instant) }
    case .stopRequested: stop()
    case .cancelled:
      stop()
      cutShort()
    }
    beginWhatCanBegin()
    defer { commands = [] }
    return commands
  }

  /// Whether nothing is left to do.
  var isDone: Bool {
    if isStopping { return holdsNothing }
    return switch mode {
    case .untilStopped: false
    case .untilNothingIsDue: isRoundOver && !roundFoundSomething
    case .oneRound: isRoundOver
    }
  }

  /// Whether, after the end, none of the rows that this worker was given still has its lease. A claim that failed may
  /// have been carried out anyway: rows of it that the worker has not seen wait until their leases expire.
  var hasGivenBackAll: Bool { failure == nil && !outcomes.isIncomplete }

  private var holdsNothing: Bool {
    runs.isEmpty && outcomes.isEmpty && queues.allSatisfy { $0.claimInFlight == nil }
  }

  private var isRoundOver: Bool { holdsNothing && queues.allSatisfy { $0.hasClaimed && !$0.hasSuspects } }

  private mutating func beginWhatCanBegin() {
    nextAlarm = nil
    if let stopBy, !isCutShort, isTime(stopBy) { cutShort() }
    if isStopping { giveBackIdle() }
    serveParked()
    check()
    write()
    claim()
    renew()
    if let nextAlarm, !alarms.contains(where: { $0 <= nextAlarm }) {
      alarms.append(nextAlarm)
      commands.append(.setAlarm(nextAlarm))
    }
  }

  /// Whether the time has come. If not, an alarm is set.
  private mutating func isTime(_ time: Instant) -> Bool {
    if now.instant >= time { return true }
    nextAlarm = min(nextAlarm ?? time, time)
    return false
  }

  // MARK: Stopping

  private mutating func stop() {
    stopBy = stopBy ?? now.instant + Self.grace
  }

  private mutating func cutShort() {
    guard !isCutShort else { return }
    isCutShort = true
    commands.append(.cutShort)
  }

  private mutating func fail(_ error: any Error) {
    failure = error
    stop()
  }

  /// Gives back everything that is not in flight.
  private mutating func giveBackIdle() {
    for number in ready + parked.map(\.run) { giveBack(number) }
    ready = []
    parked = []
  }

  // MARK: Claims

  private mutating func claim() {
    guard !isStopping else { return }
    if mode == .untilNothingIsDue, isRoundOver, roundFoundSomething {
      roundFoundSomething = false
      for place in queues.indices { queues[place].hasClaimed = false }
    }
    for place in queues.indices where queues[place].claimInFlight == nil {
      guard let claim = nextClaim(from: place) else { continue }
      queues[place].claimInFlight = (claim.scope, claim.limit, since: now.instant)
      queues[place].lastScope = claim.scope
      if claim.scope == .suspect { suspectTurn = (place + 1) % queues.count }
      commands.append(.claim(queue: place, claim.scope, limit: claim.limit))
    }
  }

  /// Whether the next suspect is one of this queue. The queues take turns. One whose turn it is keeps it while another
  /// claim of it is in flight; otherwise, a busy queue would seldom get it. If its claims hang or fail, the turn passes.
  private mutating func hasSuspectTurn(_ place: Int) -> Bool {
    for other in queues.indices.map({ ($0 + suspectTurn) % queues.count })
    where queues[other].hasSuspects && hasRoom(other) {
      if other == place { return true }
      let keepsTurn =
        if let claim = queues[other].claimInFlight { !isTime(claim.since + Self.longestTurn) } else { mayBegin(other) }
      if keepsTurn { return false }
    }
    return false
  }

  /// Whether a queue may claim more. This also limits the rows whose outcomes cannot be written.
  private func hasRoom(_ place: Int) -> Bool {
    queues[place].runs <= maximumRuns / 2 && outcomes.count(of: place) <= 4 * maximumRuns
  }

  private mutating func nextClaim(from place: Int) -> (scope: LeaseQueue.Scope, limit: Int)? {
    let isDue = isDue(place)
    // Suspects and other rows have their turns.
    if queues[place].hasSuspects, mayBegin(place), !isDue || queues[place].lastScope != .suspect, !holdsSuspect,
      hasSuspectTurn(place)
    {
      return (.suspect, 1)
    }
    guard isDue else { return nil }
    queues[place].hasClaimed = true
    guard mode == .untilStopped else { return (.all, maximumRuns) }
    let isFull = queues[place].polling.begin(at: now.instant)
    return (isFull ? .all : .recent, maximumRuns - queues[place].runs)
  }

  private mutating func isDue(_ place: Int) -> Bool {
    mode == .untilStopped ? hasRoom(place) && isTime(queues[place].polling.next) : !queues[place].hasClaimed
  }

  /// After a failure, no claim begins before the next poll.
  private mutating func mayBegin(_ place: Int) -> Bool { queues[place].polling.failures == 0 || isDue(place) }

  /// A worker holds one suspect at a time, until its outcome is written. If it kills the worker, no other becomes a dead
  /// letter with it.
  private var holdsSuspect: Bool {
    if queues.contains(where: { $0.claimInFlight?.scope == .suspect }) { return true }
    guard let (place, row) = lastSuspect else { return false }
    return runs.values.contains { $0.isSuspect } || outcomes.leases(of: place).contains { $0.id == row }
  }

  private mutating func takeClaim(_ result: Result<LeaseQueue.Claim, any Error>, from place: Int) {
    guard let (scope, limit, _) = queues[place].claimInFlight else { return }
    queues[place].claimInFlight = nil
    let claim: LeaseQueue.Claim
    switch result {
    case .failure(let error):
      guard mode == .untilStopped else { return fail(error) }
      queues[place].polling.fail(at: now.instant)
      if scope == .suspect { queues[place].hasSuspects = false }
      return
    case .success(let found): claim = found
    }
    let count = claim.runs.count + claim.orphans
    if count > 0 { roundFoundSomething = true }
    if scope == .suspect {
      queues[place].hasSuspects = count > 0
    } else {
      if mode != .oneRound, claim.hasSuspects { queues[place].hasSuspects = true }
      queues[place].polling.end(
        at: now.instant, found: count > 0, mayHaveMore: count >= limit, wasFull: scope.isFull, hears: now.hears)
    }
    let unsent = finishAgain(claim.runs, in: place)
    let holders = unsent.isEmpty ? [:] : holders(in: place)
    for rows in unsent where !keep(rows, heldBy: holders, in: place) {
      runs[nextRun] = Run(queue: place, isSuspect: scope == .suspect, rows: rows[...])
      queues[place].runs += 1
      if scope == .suspect { lastSuspect = rows.first.map { (place, $0.id) } }
      ready.append(nextRun)
      nextRun += 1
    }
  }

  /// Finishes rows that this worker has sent, and claimed again before they were deleted. The acknowledgement with the
  /// earlier lease no longer deletes them.
  ///
  /// - Returns: the rows that are to be sent.
  private mutating func finishAgain(_ runs: [[LeasedRow]], in place: Int) -> [[LeasedRow]] {
    let sent = outcomes.takeFinished(of: place)
    guard !sent.isEmpty else { return runs }
    return runs.compactMap { rows in
      for row in rows where sent.contains(row.id) { outcomes[place].finish(row) }
      let left = rows.filter { !sent.contains($0.id) }
      return left.isEmpty ? nil : left
    }
  }

  /// The run with each row of a queue that this worker has leased.
  private func holders(in place: Int) -> [Int64: Int] {
    var holders: [Int64: Int] = [:]
    for (number, run) in runs where run.queue == place {
      for row in run.rows { holders[row.id] = number }
    }
    return holders
  }

  /// Handles rows that this worker has claimed again. That happens on a machine so busy that a lease expires before it
  /// is renewed. The runs with these rows continue with the new leases, so that no row is sent twice concurrently.
  ///
  /// - Returns: whether a run has any of the rows. The others are given back.
  private mutating func keep(_ rows: [LeasedRow], heldBy holders: [Int64: Int], in place: Int) -> Bool {
    guard rows.contains(where: { holders[$0.id] != nil }) else { return false }
    for row in rows {
      if let number = holders[row.id], let index = runs[number]?.rows.firstIndex(where: { $0.id == row.id }) {
        runs[number]?.rows[index] = row
      } else {
        outcomes[place].release([row])
      }
    }
    return true
  }

  // MARK: Checks

  private mutating func check() {
    guard !isStopping, !ready.isEmpty, checks < Self.maximumChecks, isTime(checkAt) else { return }
    let numbers = ready
    ready = []
    for place in queues.indices {
      let found = numbers.compactMap { number -> Check? in
        guard let run = runs[number], run.queue == place else { return nil }
        return run.rows.first.map { Check(run: number, row: $0) }
      }
      guard !found.isEmpty else { continue }
      checks += 1
      commands.append(.check(queue: place, found))
    }
  }

  private mutating func takeVerdicts(_ result: Result<[Int64: Dispatcher.Verdict], any Error>, on found: [Check]) {
    checks -= 1
    switch result {
    case .failure(let error):
      checkFailures += 1
      checkAt = now.instant + Backoff.pause(after: checkFailures)
      if mode != .untilStopped { fail(error) }
      for check in found { repeatCheck(of: check.run) }
    case .success(let verdicts):
      checkFailures = 0
      for check in found {
        guard let row = runs[check.run]?.rows.first else { continue }
        // If not, it was claimed again while it was read.
        if row.lease.token == check.row.lease.token {
          follow(verdicts[row.id], on: row, of: check.run)
        } else {
          repeatCheck(of: check.run)
        }
      }
    }
  }

  private mutating func repeatCheck(of number: Int) {
    free(number)
    ready.append(number)
  }

  private mutating func follow(_ verdict: Dispatcher.Verdict?, on row: LeasedRow, of number: Int) {
    guard let place = runs[number]?.queue else { return }
    switch verdict {
    case .send(let send): begin(send, of: row, in: number)
    case .refused(let failure):
      free(number)
      takeFailure(failure, of: row, in: number)
    case .later(let seconds): postpone(number, by: seconds)
    case .withdrawn:
      free(number)
      outcomes[place].finish(row)
      advance(number)
    // Another worker has the row, or it was deleted: the rows behind it are not this worker's to send, either.
    case nil: giveBack(number, after: 1)
    }
  }

  // MARK: Sends

  private mutating func begin(_ send: Dispatcher.Send, of row: LeasedRow, in number: Int) {
    if isStopping {
      free(number)
      return giveBack(number)
    }
    if let host = send.host, let until = circuits[host]?.admit(at: now.instant) {
      free(number)
      return avoidHost(until: until, row, of: number)
    }
    // The device may have a new address.
    if runs[number]?.slots != send.keys {
      free(number)
      guard capacity.hasRoom(for: send.keys) else {
        if let host = send.host { note(isTimeout: nil, of: host) }
        return park(number, send.keys)
      }
      take(send.keys, for: number)
    }
    runs[number]?.send = send
    commands.append(.send(run: number, send))
  }

  private mutating func takeOutcome(_ outcome: Outcome, of number: Int, after time: Duration) {
    guard let run = runs[number], let row = run.rows.first, let send = run.send else { return }
    runs[number]?.send = nil
    free(number, after: time)
    switch outcome {
    case .delivered:
      if let host = send.host { note(isTimeout: false, of: host) }
      outcomes[run.queue].finish(row)
      advance(number)
    case .notTried:
      if let host = send.host { note(isTimeout: nil, of: host) }
      if isStopping { giveBack(number) } else { postpone(number, by: Double.random(in: 0.5...1, using: &random)) }
    case .failed(let failure):
      if let host = send.host { note(isTimeout: failure.isTimeout, of: host) }
      takeFailure(failure, of: row, in: number, device: send.device)
    }
  }

  /// - Parameter device: nil if the row was not sent.
  private mutating func takeFailure(
    _ failure: DeliveryFailure, of row: LeasedRow, in number: Int, device: Device? = nil
  ) {
    guard let place = runs[number]?.queue else { return }
    commands.append(.logFailure(queue: place, row: row, failure))
    if failure.remedy == .forgettingTheDevice, let device {
      // The rows are deleted with the device, unless it has another token by now.
      outcomes.forget(device)
      return giveBack(number)
    }
    switch failure.remedy {
    case .later(let seconds) where !isTooOld(row, of: place):
      let delay = Backoff.delay(after: row.attempts, notBefore: seconds, using: &random)
      outcomes[place].retry(row, after: delay, because: failure.description)
      giveBack(number, after: 1)
    case .later, .none, .forgettingTheDevice:
      outcomes[place].discard(row, because: failure.description)
      commands.append(.logDeadLetter(queue: place, row: row))
      advance(number)
    }
  }

  private func isTooOld(_ row: LeasedRow, of place: Int) -> Bool {
    guard let createdAt = row.createdAt else { return true }
    return createdAt < now.timestamp.adding(seconds: -queues[place].patience)
  }

  /// Gives back a run whose host does not respond.
  private mutating func avoidHost(until: Instant, _ row: LeasedRow, of number: Int) {
    if let place = runs[number]?.queue, isTooOld(row, of: place) {
      takeFailure(DeliveryFailure(description: "the webhook's host does not respond"), of: row, in: number)
    } else {
      let wait = (until - now.instant) / .seconds(1)
      postpone(number, by: wait + Double.random(in: 0...max(1, wait / 4), using: &random))
    }
  }

  /// - Parameter isTimeout: nil if nothing was learned about the host.
  private mutating func note(isTimeout: Bool?, of host: String) {
    var circuit = circuits[host] ?? Circuit()
    circuit.note(isTimeout: isTimeout, at: now.instant)
    if circuits.count > Self.maximumCircuits { circuits.removeAll() }
    circuits[host] = circuit.isClosed ? nil : circuit
  }

  /// Continues with the next row of a run.
  private mutating func advance(_ number: Int) {
    runs[number]?.rows.removeFirst()
    if runs[number]?.rows.isEmpty == true || isStopping { return giveBack(number) }
    ready.append(number)
  }

  private mutating func postpone(_ number: Int, by seconds: Double) {
    guard let run = runs[number], let row = run.rows.first else { return }
    outcomes[run.queue].postpone(row, by: seconds)
    giveBack(number, after: 1)
  }

  /// Ends a run. Gives back its rows except the first `count`, whose outcome is decided.
  private mutating func giveBack(_ number: Int, after count: Int = 0) {
    free(number)
    guard let run = runs.removeValue(forKey: number) else { return }
    queues[run.queue].runs -= 1
    outcomes[run.queue].release(run.rows.dropFirst(count))
  }

  // MARK: Slots

  private mutating func take(_ slots: [Capacity.Key], for number: Int) {
    capacity.take(slots)
    runs[number]?.slots = slots
  }

  /// - Parameter time: how long the send was in flight; nil if it did not begin.
  private mutating func free(_ number: Int, after time: Duration? = nil) {
    guard let slots = runs[number]?.slots, !slots.isEmpty else { return }
    capacity.free(slots, after: time)
    hasFreedSlot = true
    runs[number]?.slots = []
  }

  /// Parks a run that finds no free slot. If rows already wait for the same slots, it is given back immediately.
  private mutating func park(_ number: Int, _ slots: [Capacity.Key]) {
    if mode == .untilStopped, capacity.isQueued(slots, now: now.instant) { return giveUpWaiting(number, slots) }
    parked.append(Parked(run: number, slots: slots, since: now.instant))
  }

  /// Gives free slots to parked runs, and gives back the runs that have waited too long: they would keep this worker
  /// from claiming rows that it can send.
  private mutating func serveParked() {
    guard let first = parked.first else { return }
    let isLate = mode == .untilStopped && isTime(first.since + Self.longestLocalWait)
    guard hasFreedSlot || isLate else { return }
    hasFreedSlot = false
    let waiting = parked
    parked = []
    for each in waiting {
      if capacity.hasRoom(for: each.slots) {
        take(each.slots, for: each.run)
        ready.append(each.run)
      } else if mode == .untilStopped, isTime(each.since + Self.longestLocalWait) {
        giveUpWaiting(each.run, each.slots)
      } else {
        parked.append(each)
      }
    }
  }

  /// Gives back a run until it can expect a slot.
  private mutating func giveUpWaiting(_ number: Int, _ slots: [Capacity.Key]) {
    postpone(number, by: capacity.wait(for: slots, now: now.instant, using: &random))
  }

  // MARK: Outcomes

  /// Writes all outcomes since the last write.
  private mutating func write() {
    guard outcomes.canBeWritten, isCutShort || isTime(outcomes.writeAt ?? now.instant) else { return }
    let (written, gone) = outcomes.beginWrite()
    commands.append(.write(written, forgetting: gone))
  }

  private mutating func takeWritten(_ failure: (any Error)?) {
    if failure == nil {
      outcomes.endWrite(claiming: queues.map { $0.claimInFlight != nil })
    } else if isCutShort {
      // The worker that takes over these rows sends them again.
      outcomes.abandon()
    } else {
      outcomes.repeatWrite(at: now.instant)
    }
  }

  // MARK: Leases

  private mutating func renew() {
    guard !isCutShort, !isRenewing, isTime(renewAt) else { return }
    isRenewing = true
    renewAt = now.instant + Self.renewalInterval
    let leases = queues.indices.map { place in
      runs.values.filter { $0.queue == place }.flatMap { $0.rows.map(\.lease) }
        + outcomes.leases(of: place)
    }
    commands.append(.renew(leases))
  }

  private mutating func takeRenewed(_ failure: (any Error)?) {
    isRenewing = false
    if failure != nil { renewAt = now.instant + Self.renewalPauseAfterFailure }
  }
}
