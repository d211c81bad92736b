import App
import ArgumentParser
import Foundation

/// Not for people: `serve` starts the picture decoder with it.
struct Contained: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: Containment.command,
    abstract: "Run a program without access to the network and to this account's files.",
    shouldDisplay: false)

  /// As of a shell, for a command that cannot be executed.
  private static let failure = ExitCode(126)

  @Argument(parsing: .captureForPassthrough, help: "The path of the program, and its arguments.")
  var program: [String]

  func run() throws {
    // Without the log: the reader is a program.
    FileHandle.standardError.write(Data("\(Containment.replaceProcess(by: program))\n".utf8))
    throw Self.failure
  }
}
