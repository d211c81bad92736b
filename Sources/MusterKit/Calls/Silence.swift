import Foundation

/// How long nothing has come from the service. A network may swallow packets without a word: then nothing fails, and
/// only the time tells.
final class Silence: Sendable {
  /// Seconds without a byte after which a first request is given up, besides the time for its body. Its packets may be
  /// lost, so it is repeated. If that was not it, the network is slow, and further requests have all the time.
  private let patience: TimeInterval
  /// Seconds without a byte after which everything is given up.
  private let limit: TimeInterval
  /// Bytes that even a slow network takes in a second.
  private static let slowestUpload = 32_768.0

  private struct State {
    var lastSound = Silence.now
    /// Whether a request has been given up.
    var isSlow = false
  }

  private let state = Guarded(State())

  init(patience: TimeInterval, limit: TimeInterval) { (self.patience, self.limit) = (patience, limit) }

  /// Seconds by a clock that is never set.
  static var now: TimeInterval { ProcessInfo.processInfo.systemUptime }

  /// Records that something has come from the service.
  func end() { state.withLock { $0.lastSound = Self.now } }

  /// Begins after a wait that the service has asked for.
  func begin(after delay: TimeInterval) { state.withLock { $0.lastSound = Self.now + delay } }

  /// Records that a request got no response.
  func giveUpRequest() { state.withLock { $0.isSlow = true } }

  /// Seconds without any progress after which a request is given up.
  func timeout(of body: Data?) -> TimeInterval {
    let time = state.withLock { $0.isSlow } ? limit : patience
    return (time + Double(body?.count ?? 0) / Self.slowestUpload).rounded(.up)
  }

  /// Runs a body, and cancels it once nothing has come from the service for too long.
  ///
  /// - Parameter start: when someone began to wait, by ``now``.
  /// - Throws: what the body throws; ``MusterError/unreachable(_:)`` if it was cancelled
  func watch(
    since start: TimeInterval, _ body: @escaping @MainActor @Sendable () async throws -> Void
  ) async throws {
    state.withLock { $0.isSlow = false }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await Sender.$silence.withValue(self) { try await body() } }
      group.addTask {
        while true {
          let rest = max(start, self.state.withLock { $0.lastSound }) + self.limit - Self.now
          guard rest > 0 else { break }
          try await Task.sleep(for: .seconds(rest))
        }
        throw MusterError.unreachable("The network is silent: nothing has come for \(Int(self.limit)) seconds.")
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}
