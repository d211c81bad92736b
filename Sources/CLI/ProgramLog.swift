import ArgumentParser
import Foundation
import Logging

/// Where all logs go: stderr, for people on a terminal, as JSON lines otherwise.
enum ProgramLog {
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// The command, such as `serve`, as the lines name it.
  static let process: String = {
    let names = Muster.configuration.subcommands.map {
      $0.configuration.commandName ?? String(describing: $0).lowercased()
    }
    return CommandLine.arguments.dropFirst().first { names.contains($0) } ?? "muster"
  }()

  /// For libraries' loggers, too. Once, before anything logs.
  static func bootstrap() {
    LoggingSystem.bootstrap { _ in
      isTerminal ? StreamLogHandler.standardError(label: process) as any LogHandler : JSONLogHandler(process: process)
    }
  }

  /// The last line of a program that fails.
  static func fatal(_ message: String) {
    guard !isTerminal else { return JSONLogHandler.write("Error: \(message)\n") }
    Logger(label: process).critical("\(message)")
  }
}

func makeLogger() -> Logger {
  Logger(label: ProgramLog.process)
}
