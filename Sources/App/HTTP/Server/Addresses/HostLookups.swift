import Synchronization

/// Counts the lookups of hosts that have not ended. Each has a thread, which may outlive the patience of its caller.
final class HostLookups: Sendable {
  static let shared = HostLookups(limit: 256)

  private let limit: Int
  private let running = Atomic(0)

  init(limit: Int) {
    self.limit = limit
  }

  /// - Returns: false if too many are running.
  func begin() -> Bool {
    if running.add(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() {
    running.subtract(1, ordering: .relaxed)
  }
}
