import CLibpq
import Foundation
import Synchronization

// What libpq keeps for a connection besides its statements.

/// The encryption of a connection. It reads whole records from the socket, and libpq may take only a part of a record.
/// The rest is in memory, where `poll` does not see it.
enum Encryption {
  case none
  /// TLS by OpenSSL, which tells how much it holds.
  case openSSL
  /// Another one, which does not tell. The reactor looks again at each tick.
  case opaque

  init(of pg: OpaquePointer) {
    if PQsslInUse(pg) != 0 {
      self = Self.pending != nil && PQsslStruct(pg, "OpenSSL") != nil ? .openSSL : .opaque
    } else {
      self = PQgssEncInUse(pg) != 0 ? .opaque : .none
    }
  }

  /// Whether to read again although the socket may have nothing.
  func hasMore(of pg: OpaquePointer) -> Bool {
    guard self == .openSSL, let pending = Self.pending, let session = PQsslStruct(pg, "OpenSSL") else { return false }
    return pending(session) > 0
  }

  /// OpenSSL's `SSL_pending`, from the library that libpq has loaded.
  private static let pending: (@convention(c) (UnsafeMutableRawPointer) -> Int32)? = {
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "SSL_pending") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) (UnsafeMutableRawPointer) -> Int32).self)
  }()
}

/// The key to cancel a connection's current statement. libpq encrypts the request like the connection since version 17.
/// Earlier versions send it in plain text: it holds the session's process id and a random key, and no statement.
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

  /// Asks the server, over a separate connection, to cancel the current statement.
  ///
  /// - Returns: whether the request has completed, so that it cannot hit later statements. If false, it may still
  ///   arrive later and cancel whichever statement runs then.
  func cancel(within limit: Duration) async -> Bool {
    let reply = Reply<Bool>()
    // The server confirms the request by closing the connection.
    BlockingWork.run { [self] in reply.fulfil(.success(turn.withLock { _ in clibpq_cancel_send(pointer) == 1 })) }
    let alarm = Task {
      try await Task.sleep(for: limit)
      reply.fulfil(.success(false))
    }
    defer { alarm.cancel() }
    return (try? await reply.uncancellableValue()) ?? false
  }

  deinit {
    clibpq_cancel_free(pointer)
  }
}

/// The server's notice messages. Only one matters: a COMMIT was interrupted while it waited for the synchronous
/// standby. Such a commit is durable only on this server.
final class ServerNotices: Sendable {
  private let isUnconfirmed = Atomic(false)

  static let receive: PQnoticeReceiver = { context, result in
    guard let context, let result, let source = PQresultErrorField(result, Int32(UInt8(ascii: "R"))),
      String(cString: source) == "SyncRepWaitForLSN"
    else { return }
    Unmanaged<ServerNotices>.fromOpaque(context).takeUnretainedValue().isUnconfirmed.store(true, ordering: .relaxed)
  }

  /// Whether a commit since the last call was not confirmed by the standby.
  func takeUnconfirmed() -> Bool {
    isUnconfirmed.exchange(false, ordering: .relaxed)
  }
}
