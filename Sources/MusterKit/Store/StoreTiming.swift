import Foundation

/// When the store acts by itself. Times are in seconds.
struct StoreTiming: Sendable {
  /// Between validations while the stream is live. The stream's announcements may get lost.
  var withStream: TimeInterval = 600
  /// Between validations without a stream.
  var withoutStream: TimeInterval = 60
  /// The maximum wait after the first failure. It doubles with each further one.
  var firstRetry: TimeInterval = 1
  var maximumRetry: TimeInterval = 60
  /// The maximum wait while the network fails. Where the system does not say that it is back, only trying tells.
  #if canImport(Network)
    var maximumOfflineRetry: TimeInterval = 60
  #else
    var maximumOfflineRetry: TimeInterval = 3
  #endif
  /// Without a byte from the service, a pass is given up after this time, and its first request after a part of it.
  var silence: TimeInterval = 14
  var requestSilence: TimeInterval = 5
  /// Without a byte from the stream, its connection may be dead. The service sends one every 15 seconds.
  var heartbeat: TimeInterval = 18
  /// The maximum of the wait that the service asks for. A proxy may ask for days.
  var maximumHint: TimeInterval = 900
  var now: @Sendable () -> Date = { Date() }
  var sleep: @Sendable (TimeInterval) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }
  var random: @Sendable () -> Double = { Double.random(in: 0...1) }

  /// The wait before the store acts by itself again.
  ///
  /// - Parameters:
  ///   - failures: how often it has failed since it last succeeded.
  ///   - isOffline: whether the network is what failed.
  ///   - retryAfter: what the service asked for.
  func delay(failures: Int, isStreaming: Bool, isOffline: Bool = false, retryAfter: Int?) -> TimeInterval {
    guard failures > 0 else { return (isStreaming ? withStream : withoutStream) * (0.8 + 0.4 * random()) }
    let backoff = min(
      isOffline ? maximumOfflineRetry : maximumRetry, firstRetry * pow(2, Double(min(failures - 1, 20))))
    return min(maximumHint, TimeInterval(retryAfter ?? 0)) + backoff * (0.5 + 0.5 * random())
  }
}

/// The activity of a store while it runs.
struct StoreLife {
  /// Counts the lives of a store, and its streams. What comes from an earlier one is ignored.
  var number = 0
  var isRunning = false
  /// Whether the stream is live, so that changes are announced.
  var isStreaming = false
  /// Passes that have failed since the last success.
  var failures = 0
  var retryAfter: Int?
  var stream: Task<Void, Never>?
  /// Where the next stream continues.
  var lastEventID: String?
  var timer: Task<Void, Never>?
  /// Waits for the next byte of the stream.
  var heartbeat: Task<Void, Never>?
  #if canImport(Network)
    var path: NetworkPath?
  #endif

  func cancel() {
    stream?.cancel()
    timer?.cancel()
    heartbeat?.cancel()
  }
}
