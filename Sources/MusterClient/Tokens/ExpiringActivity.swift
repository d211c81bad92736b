#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
  import Dispatch
  import Foundation

  /// Keeps the system from suspending the app for a moment. It ends apps that hold a lock in a shared folder while they
  /// are suspended.
  final class ExpiringActivity: Sendable {
    private let done = DispatchSemaphore(value: 0)

    init(_ reason: String) {
      ProcessInfo.processInfo.performExpiringActivity(withReason: reason) { [done] isExpired in
        // Called a second time, on another thread, if the time is up.
        if isExpired { done.signal() } else { done.wait() }
      }
    }

    func end() { done.signal() }
  }
#endif
