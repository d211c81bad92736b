import Foundation

/// Lets one process at a time send the writes of a folder: a lock on a file, which ends with the process that holds it.
struct SendingLock: ~Copyable {
  private static let name = "sending.lock"
  /// Seconds between two tries.
  private static let pause = 0.05
  /// Seconds. A process that sends for so long has been suspended.
  private static let patience: TimeInterval = 30

  private let descriptor: Int32

  /// Waits until no other process sends.
  ///
  /// - Throws: ``StoreError/disk(_:)``, ``StoreError/locked``, or `CancellationError`
  init(_ folder: StoreFolder) async throws {
    let file = folder.file(Self.name)
    let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError.disk("\(file.path): \(String(cString: strerror(errno)))") }
    let start = ProcessInfo.processInfo.systemUptime
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      do {
        guard ProcessInfo.processInfo.systemUptime - start < Self.patience else { throw StoreError.locked }
        try await Task.sleep(for: .seconds(Self.pause))
      } catch {
        close(descriptor)
        throw error
      }
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}
