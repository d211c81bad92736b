import Foundation

/// Numbers the requests of all processes on a folder, so that the later one of two is known. A clock may be set back.
final class RequestCounter: Sendable {
  /// Has a byte for each request. Appending is atomic, and needs no lock.
  private let file: URL
  private let last = Guarded(0)

  init(in folder: StoreFolder) { file = folder.file("requests") }

  /// The number of the next request. If the disk is full, other processes do not know of it.
  func next() -> Int {
    let length = appendByte() ?? 0
    return last.withLock { last in
      last = max(last + 1, length)
      return last
    }
  }

  /// Takes over a number from a file, in case the counter's own is lost.
  func pass(_ number: Int) { last.withLock { $0 = max($0, number) } }

  /// - Returns: the length of the file.
  private func appendByte() -> Int? {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard write(descriptor, ".", 1) == 1 else { return nil }
    return Int(lseek(descriptor, 0, SEEK_CUR))
  }
}
