import Foundation

/// How often, and after which waits, calls repeat a request that found no network or a busy service.
public struct RetryPolicy: Sendable {
  /// The requests of one call, the first one included.
  public var maximumAttempts: Int
  /// Seconds. The wait before attempt n is random, up to `baseDelay` doubled n - 2 times.
  public var baseDelay: TimeInterval
  /// Seconds. The longest random wait.
  public var maximumDelay: TimeInterval
  /// Seconds. If `Retry-After` is longer, the call throws the problem.
  public var maximumRetryAfter: TimeInterval
  /// Seconds. A call does not begin a further attempt after this time.
  public var totalTime: TimeInterval
  /// Waits for a number of seconds. Throws if the task is cancelled.
  public var sleep: @Sendable (TimeInterval) async throws -> Void
  /// A number from 0 to 1.
  public var random: @Sendable () -> Double
  /// Seconds by a clock that is never set.
  public var now: @Sendable () -> TimeInterval

  public init(
    maximumAttempts: Int = 4, baseDelay: TimeInterval = 0.25, maximumDelay: TimeInterval = 8,
    maximumRetryAfter: TimeInterval = 10, totalTime: TimeInterval = 45,
    sleep: @escaping @Sendable (TimeInterval) async throws -> Void = { try await Task.sleep(for: .seconds($0)) },
    random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
    now: @escaping @Sendable () -> TimeInterval = { ProcessInfo.processInfo.systemUptime }
  ) {
    self.maximumAttempts = maximumAttempts
    self.baseDelay = baseDelay
    self.maximumDelay = maximumDelay
    self.maximumRetryAfter = maximumRetryAfter
    self.totalTime = totalTime
    self.sleep = sleep
    self.random = random
    self.now = now
  }

  /// Four attempts within 45 seconds.
  public static let `default` = RetryPolicy()

  /// One attempt.
  public static let never = RetryPolicy(maximumAttempts: 1)
}

extension RetryPolicy {
  /// How long to wait before a request is sent again.
  ///
  /// - Parameters:
  ///   - attempts: the requests that were sent so far.
  ///   - elapsed: seconds since the call began.
  /// - Returns: seconds; nil to give up.
  func delay(
    after outcome: Outcome, attempts: Int, elapsed: TimeInterval, _ repeats: APICall.Repeats
  ) -> TimeInterval? {
    guard attempts < maximumAttempts, outcome.allowsRepeat(repeats) else { return nil }
    var delay = backoff(attempts)
    if let seconds = outcome.retryAfter.map(TimeInterval.init) {
      guard seconds <= maximumRetryAfter else { return nil }
      // Not all clients come back at the same moment.
      delay = seconds + random() * max(baseDelay, seconds / 10)
    }
    return elapsed + delay <= totalTime ? delay : nil
  }

  /// Full jitter: a random wait, up to a limit that doubles with each attempt.
  func backoff(_ attempts: Int) -> TimeInterval {
    // A larger exponent is beyond every limit.
    random() * min(maximumDelay, baseDelay * pow(2, Double(min(attempts, 30) - 1)))
  }
}
