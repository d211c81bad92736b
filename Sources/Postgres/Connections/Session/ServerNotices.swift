import CLibpq
import Synchronization

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
