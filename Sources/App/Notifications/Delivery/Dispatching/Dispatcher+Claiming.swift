import Foundation
import Logging
import Postgres

/// Claims rows and keeps their leases.
extension Dispatcher {
  // MARK: Claiming

  /// Whether it is the turn of rows that must be sent alone. Nothing else begins then.
  var isSolo: Bool { !suspected.isEmpty }

  var holdsNothing: Bool {
    runs.isEmpty && claiming.isEmpty && !isWriting && acknowledgements.allSatisfy(\.isEmpty) && gone.isEmpty
  }

  func claim(_ mode: Mode, _ now: Instant, _ group: inout TaskGroup<Happening>) {
    if let source = suspected.min(), mode != .oneRound {
      if let until = soloUntil, now >= until, mode == .untilStopped {
        suspected = []
        soloUntil = nil
      } else {
        guard holdsNothing else { return }
        soloUntil = soloUntil ?? now + Self.soloTime
        return begin(source, .suspect, limit: 1, now, &group)
      }
    }
    if mode != .untilStopped, holdsNothing, claimedInRound.count == sources.count {
      // The round is over.
      guard mode == .untilNothingIsDue, roundFoundSomething else { return }
      (claimedInRound, roundFoundSomething) = ([], false)
    }
    for source in sources.indices where !claiming.contains(source) {
      let leased = runs.values.count { $0.source == source }
      if mode == .untilStopped {
        // Limits the rows whose acknowledgements cannot be written.
        let isFull = acknowledgements[source].count + unwritten[source].count > 4 * maximumRuns
        guard leased <= maximumRuns / 2, !isFull, isTime(polling[source].next, now, &group) else { continue }
        let scope: LeaseQueue.Scope = polling[source].begin(at: now) ? .all : .recent
        begin(source, scope, limit: maximumRuns - leased, now, &group)
      } else if claimedInRound.insert(source).inserted {
        begin(source, .all, limit: maximumRuns, now, &group)
      }
    }
  }

  private func begin(
    _ source: Int, _ scope: LeaseQueue.Scope, limit: Int, _ now: Instant, _ group: inout TaskGroup<Happening>
  ) {
    claiming.insert(source)
    let (queue, database, id) = (sources[source].queue, database, id)
    group.addTask {
      do {
        let claim = try await queue.claim(scope, atMost: limit, for: id, lease: UUID(), in: database)
        return .claimed(Claimed(source: source, scope: scope, limit: limit, result: .success(claim)))
      } catch {
        return .claimed(Claimed(source: source, scope: scope, limit: limit, result: .failure(error)))
      }
    }
  }

  func take(_ claimed: Claimed, _ mode: Mode) {
    let (source, now) = (claimed.source, Instant.now)
    claiming.remove(source)
    switch claimed.result {
    case .failure(let error):
      if mode != .untilStopped { failure = error }
      if mode != .untilStopped || Task.isCancelled { return stop() }
      polling[source].fail(at: now)
      logger.warning(
        "rows cannot be claimed",
        metadata: ["table": "\(sources[source].queue.table)", "error": "\(error)"])
    case .success(let claim):
      let found = !claim.runs.isEmpty || claim.orphans > 0
      if found { roundFoundSomething = true }
      switch claimed.scope {
      case .suspect:
        if !found { suspected.remove(source) }
        if suspected.isEmpty { soloUntil = nil }
      case .all, .recent:
        if mode != .oneRound, claim.hasSuspects { suspected.insert(source) }
        polling[source].end(
          at: now, found: found, mayHaveMore: claim.runs.count + claim.orphans >= claimed.limit,
          wasFull: claimed.scope.isFull)
      }
      if claim.orphans > 0 {
        logger.warning(
          "a worker died", metadata: ["table": "\(sources[source].queue.table)", "in_flight": "\(claim.orphans)"])
      }
      for id in claim.dead {
        logger.error(
          "dead letter: workers died while this was in flight",
          metadata: ["table": "\(sources[source].queue.table)", "row": "\(id)"])
      }
      let holders = claim.runs.isEmpty ? [:] : holders(in: source)
      let unsent = finishAgain(claim.runs, in: source)
      for rows in unsent where !hold(rows, again: holders, in: source) {
        runs[nextRun] = Run(source: source, isSuspect: claimed.scope.isSuspect, rows: rows[...])
        ready.append(nextRun)
        nextRun += 1
        self.claimed += 1
      }
    }
  }

  /// Finishes rows that this worker has sent, and claimed again before they were deleted. The acknowledgement with the
  /// earlier lease no longer deletes them.
  ///
  /// - Returns: the rows that are to be sent.
  private func finishAgain(_ runs: [[LeasedRow]], in source: Int) -> [[LeasedRow]] {
    defer { finished[source] = Set(unwritten[source].finished) }
    let sent = runs.isEmpty ? [] : finished[source].union(acknowledgements[source].finished)
    guard !sent.isEmpty else { return runs }
    return runs.compactMap { rows in
      for row in rows where sent.contains(row.id) { acknowledgements[source].finish(row) }
      let left = rows.filter { !sent.contains($0.id) }
      return left.isEmpty ? nil : left
    }
  }

  /// The run with each row of a source that this worker has leased.
  private func holders(in source: Int) -> [Int64: Int] {
    var holders: [Int64: Int] = [:]
    for (number, run) in runs where run.source == source {
      for row in run.rows { holders[row.id] = number }
    }
    return holders
  }

  /// Handles rows that this worker has claimed again. That happens on a machine so busy that a lease expires before it
  /// is renewed. The runs with these rows continue with the new leases, so that no row is sent twice concurrently.
  ///
  /// - Returns: whether a run has any of the rows. The others are given back.
  private func hold(_ rows: [LeasedRow], again holders: [Int64: Int], in source: Int) -> Bool {
    guard rows.contains(where: { holders[$0.id] != nil }) else { return false }
    for row in rows {
      guard let number = holders[row.id], let place = runs[number]?.rows.firstIndex(where: { $0.id == row.id }) else {
        acknowledgements[source].release([row])
        continue
      }
      runs[number]?.rows[place] = row
    }
    return true
  }

  // MARK: Leases

  /// Writes this worker's heartbeat and renews all leases.
  func renew(_ now: Instant, _ group: inout TaskGroup<Happening>) {
    isRenewing = true
    renewAt = now + Self.renewalInterval
    var statements = [LeaseQueue.byIndex, Worker.beating(id)]
    for (place, source) in sources.enumerated() {
      let leases =
        runs.values.filter { $0.source == place }.flatMap { $0.rows.map(\.lease) }
        + acknowledgements[place].leases + unwritten[place].leases
      if !leases.isEmpty { statements.append(source.queue.renewing(leases)) }
    }
    let (database, sent) = (database, statements)
    group.addTask {
      do {
        _ = try await database.transactionWithResults(repeating: true) { transaction in
          for statement in sent { transaction.atCommit(statement) }
        }
        return .renewed(nil)
      } catch {
        return .renewed(error)
      }
    }
  }

  func renewed(_ failure: (any Error)?) {
    isRenewing = false
    guard let failure, !Task.isCancelled else { return }
    renewAt = .now + .milliseconds(250)
    logger.warning("leases could not be renewed", metadata: ["error": "\(failure)"])
  }
}

extension LeaseQueue.Scope {
  var isSuspect: Bool { if case .suspect = self { true } else { false } }
}
