import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Keeps tokens in a file that only its owner may read. For systems without a keychain.
///
/// The file's folder is created with access for the owner alone, if it does not exist. Its lock, `FILE.lock`, is in the
/// same folder. A damaged file counts as a missing one.
public struct FileTokenStore: TokenStore {
  private static let newPrefix = "new-"

  public let file: URL

  public init(file: URL) { self.file = file }

  public func load() throws -> StoredTokens? {
    let data: Data
    do {
      data = try Data(contentsOf: file)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return nil
    }
    return try? JSONDecoder.muster().decode(StoredTokens.self, from: data)
  }

  public func save(_ tokens: StoredTokens) throws {
    try makeFolder()
    let new = file.appendingPathExtension(Self.newPrefix + UUID().wire)
    do {
      try write(JSONEncoder.muster().encode(tokens), to: new)
      guard rename(new.path, file.path) == 0 else { throw failure("\(file.path) cannot be replaced") }
    } catch {
      unlink(new.path)
      throw error
    }
    folder.synchronizeNames()
  }

  public func clear() throws {
    guard unlink(file.path) == 0 || errno == ENOENT else { throw failure("\(file.path) cannot be removed") }
    // Left behind by a process that was killed while saving.
    let prefix = "\(file.lastPathComponent).\(Self.newPrefix)"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    for name in names where name.hasPrefix(prefix) { unlink(folder.appendingPathComponent(name).path) }
  }

  public func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await FileLock(file: file.appendingPathExtension("lock")).withLock(body)
  }

  private var folder: URL { file.deletingLastPathComponent() }

  private func makeFolder() throws {
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// The file is on the disk when this returns.
  private func write(_ data: Data, to new: URL) throws {
    let descriptor = open(new.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(new.path) cannot be created") }
    defer { close(descriptor) }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    try handle.write(contentsOf: data)
    try handle.synchronize()
  }

  private func failure(_ what: String) -> MusterError {
    .tokensUnavailable("\(what): \(String(cString: strerror(errno)))")
  }
}
