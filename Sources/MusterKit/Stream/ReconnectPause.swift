import Foundation

/// How long to wait before a stream connects again.
struct ReconnectPause: Sendable {
  /// Seconds, unless the service says otherwise.
  static let usual: TimeInterval = 2
  /// Seconds. The maximum of the random part of the wait.
  static let maximumBackoff: TimeInterval = 60
  /// Seconds. The maximum of the wait that the service asks for.
  static let maximumHint: TimeInterval = 300

  private var minimum = usual
  private var failures = 0

  /// Records that bytes arrived.
  ///
  /// - Parameter retry: milliseconds that the stream asks to wait, if it does.
  mutating func succeed(retry: Int?) {
    failures = 0
    minimum = retry.map { min(TimeInterval($0) / 1000, Self.maximumHint) } ?? Self.usual
  }

  /// Records an attempt to connect that failed.
  ///
  /// - Parameter retryAfter: seconds that the service asks to wait, if it does.
  mutating func fail(retryAfter: Int?) {
    failures += 1
    minimum = min(max(Self.usual, TimeInterval(retryAfter ?? 0)), Self.maximumHint)
  }

  /// At least what the service asks for; after failures in a row, longer. Not all clients come back at the same moment.
  ///
  /// - Parameter random: from 0 to 1.
  /// - Returns: seconds.
  func seconds(random: Double) -> TimeInterval {
    // A larger exponent is beyond the limit.
    minimum + random * min(minimum * pow(2, Double(min(failures, 10) - 1)), Self.maximumBackoff)
  }
}
