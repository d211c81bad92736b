import Dispatch
import Foundation

/// The folder with one user's data: copies, proofs and the outbox. Files are replaced atomically. When a write
/// returns, it outlives the end of the process. Errors are ``StoreError/disk(_:)``.
///
/// After ``erase()``, writes of requests that are still under way do nothing, so that nothing of the user comes back.
final class StoreFolder: Sendable {
  /// Writes bytes to a new file. They are on the disk when it returns.
  typealias WriteFile = @Sendable (Data, FileHandle) throws -> Void

  static let writeFile: WriteFile = { data, file in
    try file.write(contentsOf: data)
    try file.synchronize()
  }

  /// A folder of its own, so that nothing of the app is deleted with it.
  private static let name = "MusterStore"
  /// Of a file that is being written.
  static let suffix = ".new"
  /// Seconds. An unfinished file of a process that ended is deleted after this time.
  private static let unfinishedAge: TimeInterval = 3600

  let url: URL
  let user: User.ID
  private let isErased = Guarded(false)
  private let writeFile: WriteFile

  /// Opens the user's folder in `MusterStore`, or creates it. Deletes the copies of other users, and the folders of
  /// those who have no unsent writes: what another process still writes for such a user then fails.
  init(in folder: URL, user: User.ID, writeFile: @escaping WriteFile = StoreFolder.writeFile) throws {
    let all = Self.all(in: folder)
    url = all.appendingPathComponent(user.wire)
    self.user = user
    self.writeFile = writeFile
    try Self.create(url)
    for name in try Self.contents(of: all) where name != user.wire {
      try Self.dropCopies(in: all.appendingPathComponent(name))
    }
    removeUnfinished()
  }

  private static func all(in folder: URL) -> URL { folder.appendingPathComponent(name) }

  /// Deletes everything in a user's folder but unsent writes.
  private static func dropCopies(in folder: URL) throws {
    try onDisk(folder) {
      for name in try contents(of: folder) where name != OutboxFiles.subfolder {
        try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
      }
      OutboxFiles.removeSent(in: folder)
      // Both stay if they are not empty: another process may just have saved a write.
      rmdir(folder.appendingPathComponent(OutboxFiles.subfolder).path)
      rmdir(folder.path)
    }
  }

  /// The users with unsent writes or refusals.
  static func usersWithUnsentWrites(in folder: URL) throws -> [User.ID] {
    let all = all(in: folder)
    guard FileManager.default.fileExists(atPath: all.path) else { return [] }
    return try contents(of: all).sorted().compactMap { name in
      guard let user = User.ID(name), OutboxFiles.haveUnsentWrites(in: all.appendingPathComponent(name)) else {
        return nil
      }
      return user
    }
  }

  /// Deletes everything of a user.
  static func erase(_ user: User.ID, in folder: URL) throws {
    checkThread()
    try erase(all(in: folder).appendingPathComponent(user.wire))
  }

  private static func erase(_ url: URL) throws {
    guard FileManager.default.fileExists(atPath: url.path) else { return }
    try onDisk(url) { try FileManager.default.removeItem(at: url) }
    // Stays if another user's folder is in it.
    rmdir(url.deletingLastPathComponent().path)
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
    try Self.contents(of: file(subfolder)).filter { !$0.hasSuffix(Self.suffix) }
  }

  private static func contents(of folder: URL) throws -> [String] {
    try onDisk(folder) { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
  }

  private static func onDisk<Result>(_ url: URL, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError.disk("\(url.path): \(error.localizedDescription)")
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
        try writeThrough(data, to: new)
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

  /// Moves a file, if it exists, in the place of another one.
  func move(_ name: String, to newName: String) throws {
    Self.checkThread()
    try isErased.withLock { isErased in
      guard !isErased, rename(file(name).path, file(newName).path) != 0, errno != ENOENT else { return }
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
      try Self.erase(url)
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
    try onDisk(url) {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
  }

  private func writeThrough(_ data: Data, to file: URL) throws {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError.disk(Self.reason(file)) }
    defer { close(descriptor) }
    try Self.onDisk(file) { try writeFile(data, FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)) }
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
