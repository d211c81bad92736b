import Foundation

/// Files that their owner alone may read, in folders that their owner alone may open.
enum PrivateFile {
  /// Replaces a file atomically: a reader sees the old content or the new.
  static func write(_ data: Data, to file: URL) throws {
    let folder = file.deletingLastPathComponent()
    let draft = folder.appending(path: ".\(file.lastPathComponent).\(UUID().uuidString)")
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      guard
        FileManager.default.createFile(atPath: draft.path, contents: data, attributes: [.posixPermissions: 0o600]),
        rename(draft.path, file.path) == 0
      else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      try? FileManager.default.removeItem(at: draft)
      throw Failure.refused("\(file.path) cannot be written.")
    }
  }
}
