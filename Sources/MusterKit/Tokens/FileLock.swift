import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A lock that processes share: a file that one of them has locked. It ends with the process that holds it.
///
/// Hold it for one request at a time. While an app holds it, the system does not suspend the app; if the time is up,
/// the work is cancelled and the lock released.
struct FileLock: Sendable {
  enum Failure: Error, Hashable {
    /// The file cannot be opened or locked.
    case file(String)
    /// Another process holds the lock. It has been suspended, or its network is slow.
    case held
    /// The app is about to be suspended.
    case suspended
  }

  /// Seconds between two tries.
  private static let pause = 0.02

  /// The file. It is created if it does not exist, and stays.
  let file: URL
  /// Whether to create the file's folder as well.
  var createsFolder = true
  /// The purpose of the lock.
  var reason = "Renewing the login"
  /// Seconds to wait for another process.
  var patience: TimeInterval = 60
  var system = ExpiringActivity.system

  /// Runs `body` while nothing else holds the lock.
  ///
  /// - Throws: what `body` throws; ``Failure``; `CancellationError`
  func withLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    do {
      return try await ExpiringActivity.run(reason, by: system) {
        let descriptor = try openFile()
        defer {
          // Explicitly: a child of this process that is about to start another program shares the descriptor.
          flock(descriptor, LOCK_UN)
          close(descriptor)
        }
        try await lock(descriptor)
        return try await body()
      }
    } catch is ExpiringActivity.Expired {
      throw Failure.suspended
    }
  }

  private func openFile() throws -> Int32 {
    if createsFolder {
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(file.path) cannot be opened") }
    return descriptor
  }

  private func lock(_ descriptor: Int32) async throws {
    let start = ProcessInfo.processInfo.systemUptime
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw failure("\(file.path) cannot be locked") }
      guard ProcessInfo.processInfo.systemUptime - start < patience else { throw Failure.held }
      try await Task.sleep(for: .seconds(Self.pause))
    }
  }

  private func failure(_ what: String) -> Failure { .file("\(what): \(String(cString: strerror(errno)))") }
}

extension FileLock.Failure: CustomStringConvertible {
  var description: String {
    switch self {
    case .file(let reason): reason
    case .held: "Another process holds the lock."
    case .suspended: "The app is about to be suspended."
    }
  }
}
