import Foundation

/// A progress bar on one line of a terminal. Prints nothing if stderr is not a terminal.
struct ProgressBar: Sendable {
  private let isTerminal = isatty(STDERR_FILENO) == 1

  func show(_ what: String, _ part: Double) {
    guard isTerminal else { return }
    let filled = Int(part * 30)
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
    FileHandle.standardError.write(Data("\r\u{1b}[K[\(bar)] \(what)".utf8))
  }

  func end() {
    if isTerminal { FileHandle.standardError.write(Data("\r\u{1b}[K".utf8)) }
  }
}
