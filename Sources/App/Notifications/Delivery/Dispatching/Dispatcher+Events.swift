import Foundation

extension Dispatcher {
  /// The results of child tasks.
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
    /// Each run, and the row that was read for it.
    let runs: [(number: Int, row: LeasedRow)]
    let result: Result<[Int64: Verdict], any Error>
  }

  enum Outcome: Sendable {
    case delivered
    /// Cut short, or kept waiting inside this process: it does not count as an attempt.
    case notTried
    case failed(DeliveryFailure)
  }

  /// Rows of one claim that are sent one after the other.
  struct Run: Sendable {
    let source: Int
    /// Sent with nothing else in flight.
    let isSuspect: Bool
    /// The first row is in flight or the next to be sent.
    var rows: ArraySlice<LeasedRow>
    /// In flight, or about to be.
    var send: Send?
    var isSending = false
    var parkedAt: Instant?
    /// The slots that it occupies.
    var slots: [Capacity.Key] = []
  }
}
