import NIOCore

/// How far a client is behind in reading what it was sent.
struct Backlog {
  /// Bytes sent since the last ``settle(left:at:)``.
  var sent = 0
  /// Bytes that were still waiting for the client at that time.
  private(set) var left = 0
  private var lag: Lag

  init(bytesPerSecond: Double) {
    lag = Lag(bytesPerSecond: bytesPerSecond, credit: 0)
  }

  /// How many seconds the client is behind the minimum speed.
  var seconds: Double { lag.seconds }

  /// - Parameter left: bytes that wait for the client now.
  mutating func settle(left: Int, at now: NIODeadline) {
    lag.bytes += max(0, self.left + sent - left)
    (self.left, sent) = (left, 0)
    if left > 0 { lag.run(at: now) } else { lag.reset() }
    lag.settle(at: now)
  }
}
