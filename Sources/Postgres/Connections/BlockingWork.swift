import Foundation

/// Runs blocking libpq calls, such as opening a connection, cancelling and scripts, off Swift's cooperative threads.
enum BlockingWork {
  /// Uses a new thread for each call: a concurrent queue has only one thread per processor, and adds one each second.
  static func run(_ work: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(work)
  }
}
