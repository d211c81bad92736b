import Synchronization

/// A clock that stands still until a test advances it.
final class StandingClock: Sendable {
  private let time = Mutex(ContinuousClock.now)

  var now: ContinuousClock.Instant { time.withLock { $0 } }

  func advance(minutes: Int) {
    time.withLock { $0 += .seconds(minutes * 60) }
  }
}
