import Dispatch
import Foundation

/// The folder with one user's data: copies, proofs and the outbox. Files are replaced atomically. When a write
/// returns, it outlives the end of the process.
///
/// After ``erase()``, writes of requests that are still under way do nothing, so that nothing of the user comes back.
final class StoreFolder: Sendable {
  /// A folder of its own, so that nothing of the app is deleted with it.
  private static let name = "MusterStore"
  private static let suffix = ".new"
  /// Seconds. An unfinished file of a process that ended is deleted after this time.
  private static let unfinishedAge: TimeInterval = 3600

  let url: URL
  let user: User.ID
  private let isErased = Guarded(false)

  /// Opens the user's folder in `MusterStore`, or creates it. Deletes everything else in `MusterStore`: what another
  /// process still writes for an earlier user then fails, because that user's folder is gone.
  init(in folder: URL, user: User.ID) throws {
    let all = folder.appendingPathComponent(Self.name)
    url = all.appendingPathComponent(user.wire)
    self.user = user
    try Self.create(url)
    for name in try FileManager.default.contentsOfDirectory(atPath: all.path) where name != user.wire {
      try FileManager.default.removeItem(at: all.appendingPathComponent(name))
    }
    removeUnfinished()
  }

  /// - Returns: nil if there is no such file, or if it cannot be read.
  func read(_ name: String) -> Data? { try? Data(contentsOf: file(name)) }

  func exists(_ name: String) -> Bool { access(file(name).path, F_OK) == 0 }

  /// Seconds since a file was written; infinite if there is none.
  func age(of name: String) -> TimeInterval {
    let attributes = try? FileManager.default.attributesOfItem(atPath: file(name).path)
    return (attributes?[.modificationDate] as? Date).map { -$0.timeIntervalSinceNow } ?? .infinity
  }

  /// The names of the files in a folder below this one.
  ///
  /// - Throws: ``StoreError/disk(_:)``
  func names(in subfolder: String) throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: file(subfolder).path)
        .filter { !$0.hasSuffix(Self.suffix) }
    } catch {
      throw StoreError.disk("\(file(subfolder).path): \(error.localizedDescription)")
    }
  }

  /// Replaces a file. It is on the disk when this returns.
  func write(_ data: Data, to name: String) throws {
    Self.checkThread()
    try isErased.withLock { isErased in
      guard !isErased else { return }
      let target = file(name)
      let new = target.appendingPathExtension(UUID().wire + Self.suffix)
      do {
        try Self.writeThrough(data, to: new)
        guard rename(new.path, target.path) == 0 else { throw StoreError.disk(Self.reason(target)) }
      } catch {
        unlink(new.path)
        throw error
      }
    }
  }

  /// Removes a file, if it exists.
  func remove(_ name: String) throws {
    Self.checkThread()
    try isErased.withLock { isErased in
      guard !isErased, unlink(file(name).path) != 0, errno != ENOENT else { return }
      throw StoreError.disk(Self.reason(file(name)))
    }
  }

  func makeSubfolder(_ name: String) throws { try Self.create(file(name)) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }

  /// Deletes everything, and drops all later writes.
  func erase() throws {
    Self.checkThread()
    try isErased.withLock { isErased in
      isErased = true
      guard FileManager.default.fileExists(atPath: url.path) else { return }
      try FileManager.default.removeItem(at: url)
      // Stays if another user's folder is in it by now.
      rmdir(url.deletingLastPathComponent().path)
    }
  }

  /// A disk may take seconds. The app would not draw meanwhile.
  private static func checkThread() {
    #if DEBUG
      dispatchPrecondition(condition: .notOnQueue(.main))
    #endif
  }

  private func removeUnfinished() {
    let files = (try? FileManager.default.subpathsOfDirectory(atPath: url.path)) ?? []
    for path in files where path.hasSuffix(Self.suffix) {
      let age = age(of: path)
      if age > Self.unfinishedAge, age < .infinity { unlink(file(path).path) }
    }
  }

  private static func create(_ url: URL) throws {
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  private static func writeThrough(_ data: Data, to file: URL) throws {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError.disk(reason(file)) }
    defer { close(descriptor) }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    try handle.write(contentsOf: data)
    try handle.synchronize()
  }

  private static func reason(_ file: URL) -> String { "\(file.path): \(String(cString: strerror(errno)))" }
}

extension URL {
  /// Writes the names in this folder to the disk, so that a renamed file also survives a power failure.
  func synchronizeNames() {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
