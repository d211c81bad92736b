import Foundation

/// Work on the files of a cluster.
enum Files {
  static func exists(_ path: String) -> Bool {
    var info = stat()
    return lstat(path, &info) == 0
  }

  static func read(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }

  static func write(_ path: String, _ text: String, mode: mode_t = 0o644) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode)
    guard file >= 0 else { throw EmbeddedPostgresError("write", path, errno: errno) }
    defer { close(file) }
    // The server's account must be able to read its configuration, whatever our umask is.
    fchmod(file, mode)
    let bytes = Array(text.utf8)
    let written = Foundation.write(file, bytes, bytes.count)
    guard written == bytes.count else {
      throw EmbeddedPostgresError("write", path, errno: written < 0 ? errno : ENOSPC)
    }
  }

  /// Whether less than a megabyte is free. That may be too little even for a log line about it.
  static func isFull(diskOf folder: String) -> Bool {
    var disk = statvfs()
    return statvfs(folder, &disk) == 0 && UInt64(disk.f_bavail) * UInt64(disk.f_frsize) < 1 << 20
  }

  static func removeAll(_ paths: [String]) throws {
    for path in paths where exists(path) {
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch {
        throw EmbeddedPostgresError("Cannot delete \(path): check who owns it and what uses it, then try again.")
      }
    }
  }

  /// Creates a folder and its parents. If root runs this, the server's account can pass through them.
  static func makeFolders(_ path: String) throws {
    guard !exists(path) else { return }
    try makeFolders(parent(of: path))
    guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw EmbeddedPostgresError("create", path, errno: errno) }
    if geteuid() == 0 { chmod(path, 0o755) }
  }

  /// The absolute path, with symbolic links resolved in the part that exists.
  static func resolved(_ path: String) -> String {
    guard path.hasPrefix("/") else { return resolved(FileManager.default.currentDirectoryPath + "/" + path) }
    if let real = realpath(path, nil) {
      defer { free(real) }
      return String(cString: real)
    }
    let name = path.split(separator: "/").last ?? ""
    return resolved(parent(of: path)) + "/" + name
  }

  private static func parent(of path: String) -> String {
    "/" + path.split(separator: "/").dropLast().joined(separator: "/")
  }

  /// FNV-1a, for a short name that is stable between runs.
  static func hash(of text: String) -> String {
    let value = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return String(value, radix: 16)
  }
}
