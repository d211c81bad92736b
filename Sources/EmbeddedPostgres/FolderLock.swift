import Foundation
import Synchronization

/// The exclusive lock on a cluster folder. It locks the file that marks the folder as ours. The kernel releases it when
/// the process ends for any reason.
final class FolderLock: Sendable {
  static let marker = "muster-cluster"
  private let descriptor: Mutex<Int32?>

  static func marks(_ folder: String) -> Bool {
    Files.exists("\(folder)/\(marker)")
  }

  init(_ folder: String) throws {
    let path = "\(folder)/\(Self.marker)"
    while true {
      // O_CLOEXEC: the server must not inherit the lock, or it would hold it for a killed owner.
      let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
      guard file >= 0 else { throw EmbeddedPostgresError("open", path, errno: errno) }
      guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
        close(file)
        let owner = Files.read(path).map { $0.prefix { $0.isNumber } } ?? ""
        throw EmbeddedPostgresError(
          "The cluster in \(folder) is in use by process \(owner.isEmpty ? "(unknown)" : owner): "
            + "stop that process first, or choose another folder.")
      }
      var locked = stat()
      var named = stat()
      if fstat(file, &locked) == 0, lstat(path, &named) == 0, locked.st_ino == named.st_ino {
        let line = Array("\(getpid())\n".utf8)
        _ = ftruncate(file, 0)
        _ = pwrite(file, line, line.count, 0)
        descriptor = Mutex(file)
        return
      }
      // Its last owner deleted the file between our open and our lock.
      close(file)
    }
  }

  func release() {
    descriptor.withLock { file in
      if let file {
        // A child between fork and exec shares the descriptor for a moment, so closing alone could leave it locked.
        flock(file, LOCK_UN)
        close(file)
      }
      file = nil
    }
  }
}
