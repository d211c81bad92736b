@testable import App

/// The times by which a ``DeliveryState`` must have begun something, and those before which it must not. The world's
/// clock goes from alarm to alarm, so that the worker acts at the very moment, or has forgotten it. See
/// ``DeliveryLedger``.
struct DeliveryTimetable {
  private struct Line {
    var claimInFlight: (scope: LeaseQueue.Scope, limit: Int)?
    var claimBy: Duration
    var notBefore = Duration.zero
    /// No claim begins before this, even after a wake-up.
    var notBeforeIfWoken = Duration.zero
    var failures = 0
    var hasSuspects = false
    var wasWoken = false
    /// Whether the worker holds so few rows that it must claim more.
    var hasRoom = true
    var hasClaimed = false
  }

  /// Without a wake-up, work is found within this time.
  private static let longestPause = Duration.milliseconds(50)
  private static let renewalPauseAfterFailure = Duration.milliseconds(250)

  private let mode: DeliveryState.Mode
  private var lines: [Line]
  /// Since when a queue could claim a suspect.
  private var suspectsSince: Duration?

  private var checksInFlight = 0
  private var checkFailures = 0
  private var checkNotBefore = Duration.zero
  /// Since when another check may begin.
  private var checksAreFreeSince = Duration.zero
  /// Rows whose check has failed.
  private var unchecked: Set<Int64> = []
  /// Rows that may be sent, and have no slot. Perhaps they are about to be given back.
  private var parked: [Int64: Duration] = [:]

  private(set) var isWriting = false
  private(set) var writeFailures = 0
  private var writeNotBefore = Duration.zero
  private var isRenewing = false
  private var renewBy: Duration

  private var stopBy: Duration?
  private var isCutShort = false
  var isStopping: Bool { stopBy != nil }

  /// - Parameter start: the start of the worker.
  init(_ mode: DeliveryState.Mode, queues: Int, at start: Duration) {
    self.mode = mode
    lines = Array(repeating: Line(claimBy: start), count: queues)
    renewBy = start
  }

  // MARK: Events

  mutating func note(_ event: DeliveryState.Event, at now: Duration) {
    switch event {
    case .started: break
    case .claimed(let queue, let result): endClaim(of: queue, result, at: now)
    case .checked(let checks, let result): endCheck(checks, result, at: now)
    case .sent, .alarm: break
    case .written(let failure):
      isWriting = false
      writeFailures = failure == nil ? 0 : writeFailures + 1
      writeNotBefore = failure == nil ? now : now + Backoff.pause(after: writeFailures)
    case .renewed(let failure):
      isRenewing = false
      renewBy = failure == nil ? max(renewBy, now) : now + Self.renewalPauseAfterFailure
    case .woken:
      for place in lines.indices {
        lines[place].wasWoken = true
        let next = max(now, lines[place].notBeforeIfWoken)
        lines[place].claimBy = min(lines[place].claimBy, next)
        lines[place].notBefore = min(lines[place].notBefore, next)
      }
    case .stopRequested, .cancelled: stop(at: now)
    }
  }

  private mutating func stop(at now: Duration) { stopBy = stopBy ?? now + DeliveryState.grace }

  private mutating func endClaim(of queue: Int, _ result: Result<LeaseQueue.Claim, any Error>, at now: Duration) {
    guard let (scope, limit) = lines[queue].claimInFlight else { return }
    lines[queue].claimInFlight = nil
    switch result {
    case .failure:
      lines[queue].failures += 1
      let pause = Polling.shortestPauseAfterFailure * (1 << min(lines[queue].failures, 6))
      lines[queue].notBeforeIfWoken = now + Polling.shortestPauseAfterFailure
      lines[queue].notBefore =
        lines[queue].wasWoken ? lines[queue].notBeforeIfWoken : now + min(pause, Polling.longestPauseAfterFailures)
      lines[queue].claimBy = lines[queue].notBefore
      if scope == .suspect { lines[queue].hasSuspects = false }
      if mode != .untilStopped { stop(at: now) }
    case .success(let claim) where scope == .suspect:
      lines[queue].hasSuspects = claim.runs.count + claim.orphans > 0
      lines[queue].claimBy = max(lines[queue].claimBy, now)
    case .success(let claim):
      let count = claim.runs.count + claim.orphans
      lines[queue].failures = 0
      if claim.hasSuspects { lines[queue].hasSuspects = true }
      lines[queue].claimBy =
        if count >= limit || lines[queue].wasWoken { now } else if count > 0 { now + Polling.shortestPause } else {
          now + Self.longestPause
        }
    }
  }

  /// - Parameter few: whether the worker holds so few rows of the queue that it must claim more.
  mutating func note(holdsFew few: Bool, of queue: Int, at now: Duration) {
    if few, !lines[queue].hasRoom { lines[queue].claimBy = max(lines[queue].claimBy, now) }
    lines[queue].hasRoom = few
  }

  /// - Parameter holds: whether the worker may hold a suspect.
  mutating func note(holdsSuspect holds: Bool, at now: Duration) {
    let isPossible = lines.contains {
      $0.hasSuspects && $0.claimInFlight == nil && $0.hasRoom && $0.failures == 0
    }
    let isWanted = isPossible && !holds && lines.allSatisfy { $0.claimInFlight?.scope != .suspect }
    suspectsSince = isWanted ? suspectsSince ?? now : nil
  }

  private mutating func endCheck(
    _ checks: [DeliveryState.Check], _ result: Result<[Int64: Dispatcher.Verdict], any Error>, at now: Duration
  ) {
    checksInFlight -= 1
    if checksInFlight == 1 { checksAreFreeSince = now }
    switch result {
    case .failure:
      checkFailures += 1
      checkNotBefore = now + Backoff.pause(after: checkFailures)
      unchecked.formUnion(checks.map(\.row.id))
      if mode != .untilStopped { stop(at: now) }
    case .success(let verdicts):
      checkFailures = 0
      for check in checks {
        if case .send? = verdicts[check.row.id] { parked[check.row.id] = now }
      }
    }
  }

  // MARK: Commands

  /// - Parameter row: the row that the command sends.
  /// - Returns: why the command comes too early; nil if it does not.
  mutating func note(_ command: DeliveryState.Command, sending row: Int64?, at now: Duration) -> String? {
    switch command {
    case .claim(let queue, let scope, let limit): return begin(scope, limit, of: queue, at: now)
    case .check(_, let checks):
      if checksInFlight > lines.count { return "\(checksInFlight + 1) checks are in flight" }
      checksInFlight += 1
      for check in checks {
        unchecked.remove(check.row.id)
        parked[check.row.id] = nil
      }
      if now < checkNotBefore { return "rows are read again without a pause after a failure" }
    case .send:
      if let row { parked[row] = nil }
    case .write(let outcomes, _):
      isWriting = true
      for lease in outcomes.flatMap(\.leases) { parked[lease.id] = nil }
      if now < writeNotBefore, !isCutShort { return "a write is repeated without a pause after a failure" }
    case .renew:
      isRenewing = true
      renewBy = now + DeliveryState.renewalInterval
    case .cutShort: isCutShort = true
    case .setAlarm, .logFailure, .logDeadLetter: break
    }
    return nil
  }

  private mutating func begin(
    _ scope: LeaseQueue.Scope, _ limit: Int, of queue: Int, at now: Duration
  ) -> String? {
    let line = lines[queue]
    lines[queue].claimInFlight = (scope, limit)
    lines[queue].hasClaimed = true
    if scope != .suspect { lines[queue].wasWoken = false }
    if line.claimInFlight != nil { return "two claims of queue \(queue) are in flight" }
    if now < line.notBefore { return "queue \(queue) is claimed from without a pause after a failure" }
    if mode == .oneRound, line.hasClaimed || scope != .all { return "one round claims twice from queue \(queue)" }
    return nil
  }

  // MARK: Lateness

  /// After a stall of the machine, nothing is late that can still begin now.
  mutating func forgive(until now: Duration) {
    for place in lines.indices { lines[place].claimBy = max(lines[place].claimBy, now) }
    checkNotBefore = max(checkNotBefore, now)
    checksAreFreeSince = max(checksAreFreeSince, now)
    parked = parked.mapValues { max($0, now - DeliveryState.longestLocalWait) }
    writeNotBefore = max(writeNotBefore, now)
    renewBy = max(renewBy, now)
    suspectsSince = suspectsSince.map { max($0, now) }
    stopBy = stopBy.map { max($0, now) }
  }

  /// - Returns: what should have begun before now; nil if nothing is late.
  func late(at now: Duration) -> String? {
    if isCutShort { return nil }
    if let stopBy, stopBy < now { return "what is in flight should have been cut short at \(stopBy)" }
    if !isRenewing, renewBy < now { return "leases should have been renewed at \(renewBy)" }
    if !isWriting, writeFailures > 0, writeNotBefore < now {
      return "the write that failed should have been repeated at \(writeNotBefore)"
    }
    if isStopping { return nil }
    return lateCheck(at: now) ?? (mode == .untilStopped ? lateClaim(at: now) : nil)
  }

  private func lateClaim(at now: Duration) -> String? {
    for (queue, line) in lines.enumerated()
    where line.claimInFlight == nil && line.hasRoom && line.claimBy < now {
      return "queue \(queue) should have been claimed from at \(line.claimBy)"
    }
    if let suspectsSince, suspectsSince + DeliveryState.longestTurn < now {
      return "a suspect could have been claimed since \(suspectsSince)"
    }
    return nil
  }

  private func lateCheck(at now: Duration) -> String? {
    guard checksInFlight < 2, max(checkNotBefore, checksAreFreeSince) < now else { return nil }
    if let row = unchecked.first { return "row \(row) should have been read again at \(checkNotBefore)" }
    // Until a write ends, it is unknown whether a row is about to be given back.
    guard mode == .untilStopped, !isWriting, writeFailures == 0 else { return nil }
    for (row, since) in parked where since + DeliveryState.longestLocalWait < now {
      return "row \(row) waits for a slot since \(since)"
    }
    return nil
  }
}
