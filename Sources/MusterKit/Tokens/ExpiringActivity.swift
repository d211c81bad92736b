import Dispatch
import Foundation

/// Work that must have ended when the system suspends the app. iOS ends apps that hold a lock in a shared folder while
/// they are suspended (0xdead10cc).
final class ExpiringActivity: Sendable {
  /// `ProcessInfo.performExpiringActivity`: calls the block with false to let the work begin, and suspends the app at the
  /// earliest when that call returns. Calls it with true, on another thread, when the time is up, or instead of false.
  typealias System = @Sendable (_ reason: String, _ block: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

  /// The time is up.
  struct Expired: Error {}

  #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
    static let system: System? = { ProcessInfo.processInfo.performExpiringActivity(withReason: $0, using: $1) }
  #else
    /// These systems suspend no processes.
    static let system: System? = nil
  #endif

  /// Seconds that the system is held up while cancelled work ends.
  private static let patience = 1.0

  private struct State {
    var beginning: CheckedContinuation<Bool, Never>?
    var isExpired = false
    var cancel: (@Sendable () -> Void)?
  }

  private let state = Guarded(State())
  private let done = DispatchSemaphore(value: 0)

  private init() {}

  /// Runs `body`, and cancels it when the time is up.
  ///
  /// - Throws: what `body` throws; ``Expired``
  static func run<R: Sendable>(
    _ reason: String, by system: System?, _ body: @escaping @Sendable () async throws -> R
  ) async throws -> R {
    guard let system else { return try await body() }
    let activity = ExpiringActivity()
    guard await activity.begin(reason, system) else { throw Expired() }
    defer { activity.end() }
    let task = Task { try await body() }
    activity.onExpiry { task.cancel() }
    do {
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch {
      if activity.state.withLock({ $0.isExpired }), !Task.isCancelled { throw Expired() }
      throw error
    }
  }

  /// - Returns: false if there is no time.
  private func begin(_ reason: String, _ system: System) async -> Bool {
    await withCheckedContinuation { continuation in
      state.withLock { $0.beginning = continuation }
      system(reason) { isExpired in if isExpired { self.expire() } else { self.hold() } }
    }
  }

  /// Holds up the system until the work is done.
  private func hold() {
    takeBeginning()?.resume(returning: true)
    done.wait()
  }

  private func expire() {
    if let beginning = takeBeginning() { return beginning.resume(returning: false) }
    let cancel = state.withLock { state in
      state.isExpired = true
      return state.cancel
    }
    cancel?()
    _ = done.wait(timeout: .now() + Self.patience)
  }

  private func takeBeginning() -> CheckedContinuation<Bool, Never>? {
    state.withLock { state in
      defer { state.beginning = nil }
      return state.beginning
    }
  }

  private func onExpiry(_ cancel: @escaping @Sendable () -> Void) {
    let isExpired = state.withLock { state in
      state.cancel = cancel
      return state.isExpired
    }
    if isExpired { cancel() }
  }

  /// Two calls may be waiting: the one that holds up the system, and the one that says that the time is up.
  private func end() {
    done.signal()
    done.signal()
  }
}
