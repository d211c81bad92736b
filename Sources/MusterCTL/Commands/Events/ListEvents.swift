import ArgumentParser
import MusterKit

struct ListEvents: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the events that you host or are invited to, the next one first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.events.list(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "No events.") { Table.events($0) }
  }
}
