import Logging
import Synchronization

/// Keeps all log lines.
final class CapturedLog: Sendable {
  struct Line: Sendable, CustomStringConvertible {
    let level: Logger.Level
    let message: String
    let metadata: Logger.Metadata
    /// Empty if there is none.
    let error: String

    var description: String { "\(message) \(metadata) \(error)" }
  }

  private struct Handler: LogHandler {
    let captured: CapturedLog
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.info

    init(_ captured: CapturedLog) {
      self.captured = captured
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let line = Line(
        level: event.level, message: "\(event.message)", metadata: metadata.merging(event.metadata ?? [:]) { $1 },
        error: event.error.map { "\($0)" } ?? "")
      captured.kept.withLock { $0.append(line) }
    }
  }

  private let kept = Mutex<[Line]>([])

  var lines: [Line] { kept.withLock { $0 } }

  /// All lines, as in a log file.
  var text: String { lines.map(\.description).joined(separator: "\n") }

  /// A logger that writes to this log.
  func logger(_ level: Logger.Level = .info) -> Logger {
    var logger = Logger(label: "test") { _ in Handler(self) }
    logger.logLevel = level
    return logger
  }
}

extension Logger {
  /// Logs only critical messages.
  static var quiet: Logger {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
  }
}
