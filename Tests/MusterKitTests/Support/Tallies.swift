import Postgres

/// Counts by name.
final class Tallies: Sendable {
  private let counts = Lock<[String: Int]>([:])

  func number(of name: String) -> Int { counts.withLock { $0[name] ?? 0 } }

  /// - Returns: how often it was called with this name, this time included.
  func count(_ name: String) -> Int {
    counts.withLock { counts in
      counts[name, default: 0] += 1
      return counts[name] ?? 0
    }
  }
}
