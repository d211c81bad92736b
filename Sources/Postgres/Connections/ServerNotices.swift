import CLibpq
import Synchronization

/// What a server says beside its results. Only one notice matters: that a COMMIT did not wait for the synchronous
/// standby, because it was told to stop. Such a commit counts on this server, and would be lost with it.
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
