import ArgumentParser
import MusterKit

/// A command that acts as a user.
protocol AccountCommand: AsyncParsableCommand {
  var options: AccountOptions { get }

  func run(as account: Account, on console: Console) async throws
}

extension AccountCommand {
  func run() async throws {
    try await run(as: try options.account(), on: options.console)
  }
}
