import Foundation

/// Where calls of libpq run that block: opening a connection, cancelling, scripts. Never on Swift's cooperative threads.
enum BlockingWork {
  /// On a thread of its own: a concurrent queue has as many as there are processors, and adds one each second.
  static func run(_ work: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(work)
  }
}
