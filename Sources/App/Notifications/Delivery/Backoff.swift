import Foundation

/// When a row that failed is tried again.
enum Backoff {
  /// In seconds, without the other side's wish.
  private static let longest = 3000.0

  /// Seconds until the next attempt: they double, up to an hour, and no two rows keep step.
  ///
  /// - Parameter seconds: the least that the other side wants.
  static func delay(after attempts: Int, notBefore seconds: Int?) -> Double {
    let backoff = min(longest, pow(2, Double(attempts))) * Double.random(in: 0.8...1.2)
    return max(backoff, Double(seconds ?? 0) * Double.random(in: 1...1.1))
  }
}
