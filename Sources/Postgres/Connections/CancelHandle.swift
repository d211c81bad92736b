import CLibpq

/// libpq's key to cancel a connection's current statement. libpq encrypts the request like the connection since version
/// 17. Earlier versions send it in plain text: it holds the session's process id and a random key, and no statement.
final class CancelHandle: Sendable {
  /// Safe to share, which the compiler cannot see: only one request is sent at a time, and nothing frees the key before
  /// `deinit`.
  nonisolated(unsafe) private let pointer: OpaquePointer
  private let turn = Lock(())

  /// - Returns: nil if libpq is out of memory.
  init?(of pg: OpaquePointer) {
    guard let pointer = clibpq_cancel_create(pg) else { return nil }
    self.pointer = pointer
  }

  /// Blocks until the server has accepted the request. The server confirms it by closing the connection.
  ///
  /// - Returns: false if the request could not be sent.
  func cancel() -> Bool {
    turn.withLock { _ in clibpq_cancel_send(pointer) == 1 }
  }

  deinit {
    clibpq_cancel_free(pointer)
  }
}
