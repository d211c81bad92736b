import Foundation

/// Why a cluster could not be started, stopped or erased: one line for an operator, with advice.
public struct EmbeddedPostgresError: Error, CustomStringConvertible {
  public let description: String

  init(_ description: String) {
    self.description = description
  }

  /// A system call on `path` failed.
  init(_ attempt: String, _ path: String, errno code: Int32) {
    let advice =
      switch code {
      case ENOSPC, EDQUOT: "free some space there and start again"
      case EACCES, EPERM, EROFS: "choose a folder that this account may write to"
      default: "check the folder, or choose another"
      }
    self.init("Cannot \(attempt) \(path) (\(String(cString: strerror(code)))): \(advice).")
  }

  /// A PostgreSQL program failed with `output`. The description quotes the relevant line.
  init(_ what: String, output: String, log: String, folder: String) {
    let fullDisk = ["No space left on device", "Check free disk space", "Disk quota exceeded"]
    if Files.isFull(diskOf: folder) || fullDisk.contains(where: output.contains) {
      self.init("No space left on the disk of \(folder) for the PostgreSQL cluster: free some space and start again.")
      return
    }
    // The line before "configuration file contains errors" names the error.
    let lines = output.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }
      .filter { !$0.hasSuffix(" contains errors") }
    let marks = ["PANIC:", "FATAL:", "ERROR:", "error:"]
    let errors = marks.lazy.compactMap { mark -> String? in
      guard let line = lines.last(where: { $0.contains(mark) }), let start = line.firstRange(of: mark)?.lowerBound
      else { return nil }
      return String(line[start...])
    }
    let quoted = errors.first ?? lines.suffix(3).joined(separator: " ")
    self.init("\(what): \(quoted) (log: \(log))")
  }
}
