import Foundation

/// What a store does by itself while it runs.
struct StoreLife {
  var isRunning = false
  /// Whether the stream is live, so that changes are announced.
  var isStreaming = false
  /// Passes that have failed since the last success.
  var failures = 0
  var retryAfter: Int?
  var stream: Task<Void, Never>?
  var timer: Task<Void, Never>?

  func cancel() {
    stream?.cancel()
    timer?.cancel()
  }
}
