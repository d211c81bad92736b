import Foundation

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
