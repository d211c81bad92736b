import CLibpq

/// libpq's key to cancel what a connection runs.
final class CancelHandle: Sendable {
  /// Unsafe for the compiler only: PQcancel may be called from any thread, and nothing else uses the key before `deinit`.
  nonisolated(unsafe) private let pointer: OpaquePointer

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
