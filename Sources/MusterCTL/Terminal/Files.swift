import Foundation

/// A file that a command reads.
enum InputFile {
  /// - Parameters:
  ///   - path: `-` for stdin.
  ///   - limit: bytes. Of a longer file, one byte more is read.
  static func data(at path: String, limit: Int) throws -> Data {
    if path == "-" { return try read(.standardInput, limit, name: "stdin") }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw Failure.refused("There is no file \"\(path)\".")
    }
    guard !isFolder.boolValue else { throw Failure.refused("\"\(path)\" is a folder. Name a file.") }
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw Failure.refused("\"\(path)\" cannot be read. Check its permissions.")
    }
    return try read(file, limit, name: "\"\(path)\"")
  }

  private static func read(_ file: FileHandle, _ limit: Int, name: String) throws -> Data {
    var data = Data()
    do {
      while data.count <= limit, let part = try file.read(upToCount: limit + 1 - data.count), !part.isEmpty {
        data += part
      }
    } catch {
      throw Failure.refused("\(name) cannot be read.")
    }
    return data
  }
}

/// A file that a command writes, which its owner alone may read.
struct OutputFile {
  private let path: String
  /// Whether the file existed when the command began.
  let exists: Bool

  /// - Throws: `Failure` if the path can only be something else than a file, or if its folder cannot be written.
  init(at path: String) throws {
    self.path = path
    let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
    exists = type != nil
    guard type == nil || type == .typeRegular else {
      throw Failure.refused("\"\(path)\" is not a file. Use another name.")
    }
    let folder = URL(filePath: path).deletingLastPathComponent().path
    guard !path.hasSuffix("/"), FileManager.default.fileExists(atPath: folder) else {
      throw Failure.refused("The folder of \"\(path)\" does not exist. Create it first.")
    }
    guard FileManager.default.isWritableFile(atPath: folder) else {
      throw Failure.refused("The folder of \"\(path)\" cannot be written. Use another one.")
    }
  }

  /// Replaces the file if it existed when the command began, and never one that was created since.
  func write(_ data: Data) throws {
    let url = URL(filePath: path)
    if exists { return try PrivateFile.write(data, to: url) }
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      let reason = errno == EEXIST ? "was created meanwhile, and is kept. Use another name" : "cannot be written"
      throw Failure.refused("\"\(path)\" \(reason).")
    }
    do {
      let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
      try handle.write(contentsOf: data)
      try handle.close()
    } catch {
      try? FileManager.default.removeItem(at: url)
      throw Failure.refused("\"\(path)\" cannot be written. Is the disk full?")
    }
  }
}
