import CLibpq
import Foundation

/// libpq's key to cancel what a connection runs.
// Sendable by hand: PQcancel may be called from any thread, and the key is freed with its last user.
final class CancelHandle: @unchecked Sendable {
  private let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) {
    self.pointer = pointer
  }

  /// Blocks until the server has taken the request, which it shows by hanging up.
  ///
  /// - Returns: false if the server could not be asked.
  func cancel() -> Bool {
    var message: [CChar] = Array(repeating: 0, count: 256)
    return PQcancel(pointer, &message, Int32(message.count)) == 1
  }

  deinit {
    PQfreeCancel(pointer)
  }
}

/// Where calls of libpq run that block: opening a connection, cancelling, scripts. Never on Swift's cooperative threads.
enum BlockingWork {
  /// On a thread of its own: a concurrent queue has as many as there are processors, and adds one each second.
  static func run(_ work: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(work)
  }
}
