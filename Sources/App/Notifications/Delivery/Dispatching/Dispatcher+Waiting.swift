import Foundation

/// Handles rows that find no free slot.
extension Dispatcher {
  /// Parks a run that finds no free slot. If rows already wait for the same slots, it is given back immediately.
  func park(_ number: Int, _ send: Send, _ mode: Mode, _ now: Instant) {
    runs[number]?.send = send
    if mode == .untilStopped, capacity.isQueued(send.keys, now: now) { return giveBack(number, now) }
    if runs[number]?.parkedAt == nil { runs[number]?.parkedAt = now }
    parked.append(number)
  }

  /// Gives free slots to parked runs, and gives back the runs that have waited too long: they would keep this worker
  /// from claiming rows that it can send.
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

  /// Gives back a run until it can expect a slot.
  func giveBack(_ number: Int, _ now: Instant) {
    guard let run = runs[number], let row = run.rows.first, let send = run.send else { return }
    acknowledgements[run.source].postpone(row, by: capacity.wait(for: send.keys, now: now))
    drop(number, from: 1)
  }

  /// Gives back a run whose host does not respond.
  func leaveAlone(_ number: Int, _ row: LeasedRow, until: Instant, _ now: Instant) {
    guard let run = runs[number] else { return }
    if isOver(row, run) {
      end(number, row, DeliveryFailure(description: "the webhook's host does not respond"))
    } else {
      let wait = (until - now) / .seconds(1)
      acknowledgements[run.source].postpone(row, by: wait + Double.random(in: 0...max(1, wait / 4)))
      drop(number, from: 1)
    }
  }

  /// Gives back everything that is not in flight.
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

  /// Ends a run. Gives back its rows except the first `count`, whose outcome is decided.
  func drop(_ number: Int, from count: Int) {
    guard let run = runs.removeValue(forKey: number) else { return }
    acknowledgements[run.source].release(run.rows.dropFirst(count))
  }

  func free(_ number: Int, after time: Duration?) {
    guard let slots = runs[number]?.slots, !slots.isEmpty else { return }
    capacity.free(slots, after: time)
    runs[number]?.slots = []
  }
}
