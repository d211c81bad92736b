import Foundation

/// How long nothing has come from the service. A network may swallow packets without a word: then nothing fails, and
/// only the time tells.
final class Silence: Sendable {
  /// Seconds without a byte after which a request is given up, besides the time for its body.
  private let patience: TimeInterval
  /// Bytes that even a slow network takes in a second.
  private static let slowestUpload = 32_768.0

  private let lastSound = Guarded(Silence.now)

  init(patience: TimeInterval) { self.patience = patience }

  /// Seconds by a clock that is never set.
  static var now: TimeInterval { ProcessInfo.processInfo.systemUptime }

  /// Records that something has come from the service.
  func end() { lastSound.withLock { $0 = Self.now } }

  /// Seconds without any progress after which a request is given up.
  func timeout(of body: Data?) -> TimeInterval {
    (patience + Double(body?.count ?? 0) / Self.slowestUpload).rounded(.up)
  }

  /// Runs a body, and cancels it once nothing has come from the service for too long. Requests of the body are given up
  /// early, so that they can be repeated within this time.
  ///
  /// - Parameters:
  ///   - start: when someone began to wait, by ``now``.
  ///   - limit: seconds.
  /// - Throws: what the body throws; ``MusterError/unreachable(_:)`` if it was cancelled
  func watch(
    since start: TimeInterval, limit: TimeInterval, _ body: @escaping @MainActor @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await Sender.$silence.withValue(self) { try await body() } }
      group.addTask {
        while true {
          let rest = max(start, self.lastSound.withLock { $0 }) + limit - Self.now
          guard rest > 0 else { break }
          try await Task.sleep(for: .seconds(rest))
        }
        throw MusterError.unreachable("The network is silent: nothing has come for \(Int(limit)) seconds.")
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}
