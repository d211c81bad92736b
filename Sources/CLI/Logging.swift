import Foundation
import Logging

/// Logs go to stderr: for people on a terminal, JSON lines otherwise.
func makeLogger(level: Logger.Level = .info) -> Logger {
  let isTerminal = isatty(STDERR_FILENO) == 1
  var logger = Logger(label: "muster") { label in
    isTerminal ? StreamLogHandler.standardError(label: label) as any LogHandler : JSONLogHandler()
  }
  logger.logLevel = level
  return logger
}

/// One JSON object a line: `time`, `level`, `message` and the metadata.
private struct JSONLogHandler: LogHandler {
  var metadata = Logger.Metadata()
  var logLevel = Logger.Level.info

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var fields = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { "\($0)" }
    fields["time"] = Date().ISO8601Format(.iso8601WithTimeZone(includingFractionalSeconds: true))
    fields["level"] = event.level.rawValue
    fields["message"] = "\(event.message)"
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard var line = try? encoder.encode(fields) else { return }
    line.append(UInt8(ascii: "\n"))
    // One write for a line: lines of several threads do not mix.
    line.withUnsafeBytes { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  }
}
