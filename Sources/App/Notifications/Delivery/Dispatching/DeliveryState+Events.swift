import Foundation
import Postgres

/// The input and the output of the state.
extension DeliveryState {
  /// The demands of a queue.
  struct Policy: Sendable {
    /// Seconds after the change at which a row that still fails becomes a dead letter.
    let patience: Int
    /// Without a wake-up, rows are found within this time.
    var longestPause = Duration.milliseconds(50)
  }

  struct Moment: Sendable {
    var instant: Instant
    var timestamp: Timestamp
    /// See ``Polling/end(at:found:mayHaveMore:wasFull:rest:hears:)``.
    var hears = false
  }

  // MARK: Events

  enum Event: Sendable {
    case started
    case claimed(queue: Int, Result<LeaseQueue.Claim, any Error>)
    /// A row without a verdict is no longer leased.
    case checked([Check], Result<[Int64: Dispatcher.Verdict], any Error>)
    case sent(run: Int, after: Duration, Outcome)
    case written(failure: (any Error)?)
    case renewed(failure: (any Error)?)
    case alarm(Instant)
    /// There may be work.
    case woken
    /// Finish what is in flight, and give back the rest.
    case stopRequested
    /// Stop now.
    case cancelled
  }

  enum Outcome: Sendable {
    case delivered
    /// Cut short, or kept waiting inside this process: it does not count as an attempt.
    case notTried
    case failed(DeliveryFailure)
  }

  // MARK: Commands

  /// Each is answered by the event in parentheses.
  enum Command: Sendable {
    /// Claim at most this many runs (``Event/claimed(queue:_:)``).
    case claim(queue: Int, LeaseQueue.Scope, limit: Int)
    /// Reread what the sends of these rows depend on (``Event/checked(_:_:)``). A send begins with this read, and
    /// respects all changes committed before it.
    case check(queue: Int, [Check])
    /// Send the first row of a run (``Event/sent(run:after:_:)``).
    case send(run: Int, Dispatcher.Send)
    /// Write the outcomes, by queue, and forget devices that their providers no longer know
    /// (``Event/written(failure:)``).
    case write([Acknowledgements], forgetting: [Device])
    /// Write the heartbeat, and renew these leases, by queue (``Event/renewed(failure:)``).
    case renew([[LeasedRow.Lease]])
    /// Wait until then (``Event/alarm(_:)``).
    case setAlarm(Instant)
    /// Cancel everything in flight but writes, and claims that were sent.
    case cutShort
    case logFailure(queue: Int, row: LeasedRow, DeliveryFailure)
    case logDeadLetter(queue: Int, row: LeasedRow)
  }

  /// A row that is read again before it is sent.
  struct Check: Sendable {
    let run: Int
    let row: LeasedRow
  }
}
