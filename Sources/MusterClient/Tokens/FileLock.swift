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

  /// Runs `body` while nothing else holds the lock.
  ///
  /// - Throws: what `body` throws; ``MusterError/tokensUnavailable(_:)`` if the file cannot be opened, or if another
  ///   process holds the lock for a minute; `CancellationError`
  func withLock<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
    let descriptor = try openFile()
    defer {
      // Explicitly: a child of this process that is about to start another program shares the descriptor.
      flock(descriptor, LOCK_UN)
      close(descriptor)
    }
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      let activity = ExpiringActivity("Renewing the login")
      defer { activity.end() }
    #endif
    try await lock(descriptor)
    return try await body()
  }

  private func openFile() throws -> Int32 {
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(file.path) cannot be opened") }
    return descriptor
  }

  private func lock(_ descriptor: Int32) async throws {
    let start = ProcessInfo.processInfo.systemUptime
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw failure("\(file.path) cannot be locked") }
      guard ProcessInfo.processInfo.systemUptime - start < Self.patience else {
        throw MusterError.tokensUnavailable("Another process holds the lock \(file.path).")
      }
      try await Task.sleep(for: .seconds(Self.pause))
    }
  }

  private func failure(_ what: String) -> MusterError {
    .tokensUnavailable("\(what): \(String(cString: strerror(errno)))")
  }
}
