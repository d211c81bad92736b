import App
import ArgumentParser
import Foundation
import Postgres

@main
struct Muster: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "muster",
    abstract: "The backend of a social planning app: who is up for what, when?",
    discussion: """
      Configuration comes from environment variables and from a .env file in the working directory. Defaults are in
      parentheses:

      \(Variable.listing)

      Each of \(Variable.secrets) may come from a file instead: set NAME_FILE to its path.
      """,
    version: Release.version,
    subcommands: [
      Dev.self, Serve.self, Worker.self, Migrate.self, Seed.self, Queue.self, Sessions.self, StampsCommand.self,
      ReportsCommand.self, MailCommand.self, Keys.self, Contained.self,
    ])

  /// Reports every failure as one line on stderr.
  static func main() async {
    Containment.begin()
    ProgramLog.bootstrap()
    do {
      var command = try parseAsRoot()
      if var asyncCommand = command as? any AsyncParsableCommand {
        try await asyncCommand.run()
      } else {
        try command.run()
      }
    } catch {
      let code = exitCode(for: error)
      if error is ExitCode { exit(withError: code) }
      // Help and the version on request, and the usage on a terminal.
      if code.isSuccess || code == .validationFailure && ProgramLog.isTerminal { exit(withError: error) }
      ProgramLog.fatal(line(for: error))
      exit(withError: code)
    }
  }

  private static func line(for error: any Error) -> String {
    switch error {
    case let error as PostgresError:
      "database error: \(error.description.split(separator: "\n").first ?? "unknown")"
    case let error as AppError: error.message
    default: message(for: error)
    }
  }
}

/// An error that is shown to the operator as one line.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

extension Encodable {
  /// Prints the value for scripts.
  func printJSON() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(self), as: UTF8.self))
  }
}
