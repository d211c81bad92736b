import ArgumentParser
import Foundation
import Logging
import Synchronization

/// Sends all logs to stderr: as readable text on a terminal, otherwise as JSON lines.
enum ProgramLog {
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// The command, such as `serve`, as log lines name it.
  static let process: String = {
    let names = Muster.configuration.subcommands.map {
      $0.configuration.commandName ?? String(describing: $0).lowercased()
    }
    return CommandLine.arguments.dropFirst().first { names.contains($0) } ?? "muster"
  }()

  /// Sets up all loggers, including those of libraries. Call it once, before anything logs.
  static func bootstrap() {
    let repetitions = Repetitions()
    LoggingSystem.bootstrap { _ in
      let handler =
        isTerminal ? StreamLogHandler.standardError(label: process) as any LogHandler : JSONLogHandler(process: process)
      return SteadyLogHandler(handler: handler, repetitions: repetitions)
    }
  }

  /// Logs the last line of a failing program.
  static func fatal(_ message: String) {
    guard !isTerminal else { return JSONLogHandler.write("Error: \(message)\n") }
    Logger(label: process).critical("\(message)")
  }
}

func makeLogger() -> Logger {
  Logger(label: ProgramLog.process)
}

/// Warnings and errors that were logged lately, by their text: an outage of another service must not fill the disk.
private final class Repetitions: Sendable {
  private static let interval = Duration.seconds(10)
  /// The texts are written in the source, so there are few.
  private static let limit = 1000

  private let known = Mutex<[String: (logged: ContinuousClock.Instant, held: Int)]>([:])

  /// - Returns: the number of lines that this one stands for; nil if it is held back.
  func count(_ text: String, at now: ContinuousClock.Instant = .now) -> Int? {
    known.withLock { known in
      if let line = known[text], now < line.logged + Self.interval {
        known[text]?.held += 1
        return nil
      }
      let held = known[text]?.held ?? 0
      if known.count >= Self.limit { known = [:] }
      known[text] = (now, 0)
      return held + 1
    }
  }
}

/// Writes a warning or an error at most once in ten seconds, with the number of equal ones since the last line. Lines
/// about requests have limits of their own, and are looked up by their ids.
private struct SteadyLogHandler: LogHandler {
  private var handler: any LogHandler
  private let repetitions: Repetitions

  init(handler: any LogHandler, repetitions: Repetitions) {
    (self.handler, self.repetitions) = (handler, repetitions)
  }

  var metadata: Logger.Metadata {
    get { handler.metadata }
    set { handler.metadata = newValue }
  }

  var logLevel: Logger.Level {
    get { handler.logLevel }
    set { handler.logLevel = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { handler[metadataKey: key] }
    set { handler[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) {
    guard event.level >= .warning, event.level < .critical, handler[metadataKey: "request"] == nil else {
      return handler.log(event: event)
    }
    let place = ["table", "type"].compactMap { event.metadata?[$0].map { "\($0)" } }
    guard let count = repetitions.count(([event.message.description] + place).joined(separator: " ")) else { return }
    var event = event
    if count > 1 {
      event.metadata = (event.metadata ?? [:]).merging(["repeated": .stringConvertible(count)]) { $1 }
    }
    handler.log(event: event)
  }
}

/// Writes one JSON object per line: `time`, `level`, `process`, `message` and the metadata. Numbers are JSON numbers.
private struct JSONLogHandler: LogHandler {
  let process: String
  var metadata = Logger.Metadata()
  var logLevel = Logger.Level.info

  init(process: String) {
    self.process = process
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var fields = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { Field($0) }
    if let error = event.error { fields["error"] = .text("\(error)") }
    fields["time"] = .text(Date().ISO8601Format(.iso8601WithTimeZone(includingFractionalSeconds: true)))
    fields["level"] = .text(event.level.rawValue)
    fields["process"] = .text(process)
    fields["message"] = .text("\(event.message)")
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let line = try? encoder.encode(fields) else { return }
    Self.write(String(decoding: line, as: UTF8.self) + "\n")
  }

  /// Uses one system call per line, so that lines of several threads do not mix.
  static func write(_ line: String) {
    Data(line.utf8).withUnsafeBytes { bytes in _ = Foundation.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  }
}

private enum Field: Encodable {
  case text(String)
  case integer(Int64)
  case fraction(Double)
  case flag(Bool)
  case list([Field])
  case object([String: Field])

  init(_ value: Logger.MetadataValue) {
    switch value {
    case .string(let text): self = .text(text)
    case .array(let values): self = .list(values.map { Field($0) })
    case .dictionary(let values): self = .object(values.mapValues { Field($0) })
    case .stringConvertible(let value):
      switch value {
      case let number as any BinaryInteger: self = .integer(Int64(clamping: number))
      case let number as Double where number.isFinite: self = .fraction(number)
      case let flag as Bool: self = .flag(flag)
      default: self = .text("\(value)")
      }
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .fraction(let value): try container.encode(value)
    case .flag(let value): try container.encode(value)
    case .list(let values): try container.encode(values)
    case .object(let values): try container.encode(values)
    }
  }
}
