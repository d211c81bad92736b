import Foundation

extension URL {
  /// Writes the names in this folder to the disk, so that a renamed file also survives a power failure.
  func synchronizeNames() {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
