import Foundation

/// Runs blocking calls, such as opening a connection, cancelling and scripts, off Swift's cooperative threads. The
/// service looks up hosts with it, hence `package`.
package enum BlockingWork {
  /// Uses a new thread for each call: a concurrent queue has only one thread per processor, and adds one each second.
  package static func run(_ work: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(work)
  }
}
