import ArgumentParser
import MusterKit

struct PastEvents: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "past", abstract: "List events that are over, the latest first.")

  @Option(help: ArgumentHelp("The maximum number of events.", valueName: "number"))
  var limit = 50

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard (1...10_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 10000.") }
  }

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages(limit: limit) {
      try await account.client.events.past(limit: $0, cursor: $1)
    }
    try console.show(reply, orNote: "No past events.") { Table.events($0) }
  }
}
