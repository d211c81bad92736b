import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A lock that processes share: a file that one of them has locked. It ends with the process that holds it.
struct FileLock: Sendable {
  /// Seconds between two tries.
  private static let pause = 0.02
  /// Seconds. Longer than any refresh: a process that holds the lock for so long has been suspended.
  private static let patience = 60.0

  /// The file. It is created if it does not exist, and stays.
  let file: URL

  /// - Throws: what `body` throws; ``MusterError/tokensUnavailable(_:)`` if the file cannot be opened, or if another
  ///   process holds the lock for a minute; `CancellationError`
  func withLock<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
    let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MusterError.tokensUnavailable("\(file.path) cannot be opened: \(String(cString: strerror(errno)))")
    }
    // Closing the file ends the lock.
    defer { close(descriptor) }
    let start = ProcessInfo.processInfo.systemUptime
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw MusterError.tokensUnavailable("\(file.path) cannot be locked: \(String(cString: strerror(errno)))")
      }
      guard ProcessInfo.processInfo.systemUptime - start < Self.patience else {
        throw MusterError.tokensUnavailable("Another process holds the lock \(file.path).")
      }
      try await Task.sleep(for: .seconds(Self.pause))
    }
    return try await body()
  }
}
