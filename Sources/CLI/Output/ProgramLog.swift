import ArgumentParser
import Foundation
import Logging

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
    LoggingSystem.bootstrap { _ in
      isTerminal ? StreamLogHandler.standardError(label: process) as any LogHandler : JSONLogHandler(process: process)
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
