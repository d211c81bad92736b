import CLibpq

/// libpq's key to cancel a connection's current statement.
final class CancelHandle: Sendable {
  /// Safe to share, which the compiler cannot see: PQcancel may be called from any thread, and nothing frees the key
  /// before `deinit`.
  nonisolated(unsafe) private let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) {
    self.pointer = pointer
  }

  /// Blocks until the server has accepted the request. The server confirms it by closing the connection.
  ///
  /// - Returns: false if the request could not be sent.
  func cancel() -> Bool {
    var message: [CChar] = Array(repeating: 0, count: 256)
    return PQcancel(pointer, &message, Int32(message.count)) == 1
  }

  deinit {
    PQfreeCancel(pointer)
  }
}
