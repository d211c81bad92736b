import ArgumentParser
import Foundation

/// Asks the person at the terminal before a command does something that cannot be undone.
struct Confirmation: ParsableArguments {
  @Flag(help: "Do not ask. Required if there is no terminal.")
  var yes = false

  /// - Throws: unless the person agrees, or `--yes` was given.
  func ask(_ statement: String) throws {
    guard !yes else { return }
    guard isatty(STDIN_FILENO) == 1 else { throw Failure("\(statement) Without a terminal, confirm it with --yes.") }
    FileHandle.standardError.write(Data("\(statement) Type yes to continue: ".utf8))
    guard readLine() == "yes" else { throw Failure("nothing was changed") }
  }
}
