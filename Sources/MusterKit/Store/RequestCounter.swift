import Foundation

/// Numbers the requests of all processes on a folder, so that the later one of two is known. A clock may be set back.
final class RequestCounter: Sendable {
  /// Is as long as the last number. Appending is atomic, and needs no lock.
  private let file: URL
  private let last = Guarded(0)

  init(in folder: StoreFolder) { file = folder.file("requests") }

  /// The number of the next request. If the disk is full, other processes learn of it with a later one.
  func next() -> Int {
    last.withLock { last in
      last = max(last + 1, append(upTo: last + 1))
      return last
    }
  }

  /// Takes over a number from a file, in case the counter's own file is lost.
  func pass(_ number: Int) { last.withLock { $0 = max($0, number) } }

  /// Appends a byte, and those that the file lacks before it.
  ///
  /// - Returns: the length of the file; 0 if it cannot be written.
  private func append(upTo number: Int) -> Int {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    let count = max(1, number - Int(lseek(descriptor, 0, SEEK_END)))
    guard write(descriptor, [UInt8](repeating: UInt8(ascii: "."), count: count), count) > 0 else { return 0 }
    return Int(lseek(descriptor, 0, SEEK_CUR))
  }
}
