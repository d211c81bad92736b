import CLibpq
import Foundation

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
