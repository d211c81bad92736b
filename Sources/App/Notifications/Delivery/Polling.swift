/// When to poll: immediately after work was found or after a wake-up, otherwise after a pause that doubles. Decides
/// only.
struct Polling: Sendable {
  typealias Instant = ContinuousClock.Instant

  static let shortestPause = Duration.milliseconds(2)
  /// The longest time between two full polls, which also find what polls of recent rows miss. Together with the lease,
  /// this is less than the five seconds within which another worker takes over.
  static let fullInterval = Duration.milliseconds(800)
  /// The shortest pause after a failure, even after a wake-up.
  static let shortestPauseAfterFailure = Duration.milliseconds(100)
  static let longestPauseAfterFailures = Duration.seconds(5)

  /// The longest pause of a process that surely learns about new work, once nothing has happened for a while: work may
  /// still wait for the end of a send, or for a lock, and no one announces that.
  static let heardPause = Duration.seconds(1)
  static let quietTime = Duration.seconds(5)

  /// Without a wake-up, work is found within this time.
  private let longestPause: Duration
  /// Whether full polls alternate with others while there is more work than one poll can take.
  let alternates: Bool
  private(set) var next: Instant
  private var pause = Polling.shortestPause
  private var nextFull: Instant?
  /// Whether the last full poll took as much as it may at once.
  private var isBehind = false
  private var wasWoken = false
  /// No poll begins before this, even after a wake-up.
  private var earliest: Instant
  private(set) var failures = 0
  private var lastActive: Instant

  init(longestPause: Duration = .milliseconds(50), alternates: Bool = false, now: Instant = .now) {
    self.longestPause = longestPause
    self.alternates = alternates
    next = now
    earliest = now
    lastActive = now
  }

  mutating func wake(at now: Instant) {
    (next, pause, wasWoken) = (min(next, max(now, earliest)), Self.shortestPause, true)
    lastActive = now
  }

  /// - Returns: whether the poll that begins now must be a full one.
  mutating func begin(at now: Instant) -> Bool {
    wasWoken = false
    guard let nextFull, now < nextFull else {
      self.nextFull = now + Self.fullInterval
      return true
    }
    return false
  }

  /// - Parameters:
  ///   - mayHaveMore: whether the poll took as much as it may at once. After a full poll that did, the next one begins at
  ///     once. If polls alternate, the next one is not full and the one after it is; otherwise the next one is full.
  ///   - rest: how long work gathers before the next poll, even after a wake-up.
  ///   - hears: whether a wake-up surely follows new work. Then rows that are due later, and announcements that were lost
  ///     with their senders, are found within a second.
  mutating func end(
    at now: Instant, found: Bool, mayHaveMore: Bool, wasFull: Bool, rest: Duration = .zero, hears: Bool = false
  ) {
    failures = 0
    if found { lastActive = now }
    let mayRest = hears && now >= lastActive + Self.quietTime
    pause = found ? Self.shortestPause : min(pause * 2, mayRest ? Self.heardPause : longestPause)
    if wasFull { isBehind = mayHaveMore }
    if isBehind { nextFull = wasFull && alternates ? now + Self.fullInterval : nil }
    // A wake-up during the poll may have come too late for it.
    next = mayHaveMore || isBehind || wasWoken ? now : now + pause
    if let nextFull { next = min(next, nextFull) }
    earliest = isBehind ? now : now + rest
    next = max(next, earliest)
  }

  mutating func fail(at now: Instant) {
    failures += 1
    earliest = now + Self.shortestPauseAfterFailure
    // There is work if a wake-up came during the poll.
    next = wasWoken ? earliest : now + Self.pause(after: failures)
  }

  /// The pause after failures in a row, without a wake-up.
  static func pause(after failures: Int) -> Duration {
    min(longestPauseAfterFailures, shortestPauseAfterFailure * (1 << min(failures, 6)))
  }
}
