import Foundation

/// The activity of a store while it runs.
struct StoreLife {
  /// Counts the lives of a store. What comes from the stream of an earlier one is ignored.
  var number = 0
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
