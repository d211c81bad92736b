import Foundation

/// When a failed row is retried.
enum Backoff {
  /// In seconds, unless the other side asks for more.
  private static let longest = 3000.0

  /// The seconds until the next attempt. They double, up to an hour, and vary at random so that rows do not retry in
  /// step.
  ///
  /// - Parameter seconds: the minimum that the other side asks for.
  static func delay(after attempts: Int, notBefore seconds: Int?) -> Double {
    let backoff = min(longest, pow(2, Double(attempts))) * Double.random(in: 0.8...1.2)
    return max(backoff, Double(seconds ?? 0) * Double.random(in: 1...1.1))
  }
}
