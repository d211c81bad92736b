import NIOCore

/// How many seconds a peer is behind the minimum speed. Its clock can be stopped.
struct Lag {
  let bytesPerSecond: Double
  /// The maximum number of seconds that a fast peer may be ahead.
  let credit: Double
  /// Bytes that are not yet counted in `seconds`.
  var bytes = 0
  private(set) var seconds = 0.0
  private var since: NIODeadline?

  init(bytesPerSecond: Double, credit: Double) {
    (self.bytesPerSecond, self.credit) = (bytesPerSecond, credit)
  }

  var isRunning: Bool { since != nil }

  mutating func reset() { (bytes, seconds, since) = (0, 0, nil) }

  mutating func run(at now: NIODeadline) { since = since ?? now }

  mutating func stop(at now: NIODeadline) {
    settle(at: now)
    since = nil
  }

  mutating func settle(at now: NIODeadline) {
    if let since {
      seconds += Double((now - since).nanoseconds) / 1e9
      self.since = now
    }
    seconds = max(-credit, seconds - Double(bytes) / bytesPerSecond)
    bytes = 0
  }
}

extension TimeAmount {
  init(seconds: Double) { self = .nanoseconds(Int64(seconds * 1e9)) }
}
