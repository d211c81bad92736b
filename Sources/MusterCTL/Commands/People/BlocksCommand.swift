import ArgumentParser
import MusterKit

struct BlocksCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "blocks", abstract: "List the users whom you have blocked, newest first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.blocks.list(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "You have not blocked any users.") {
      Table.people($0.map { ($0.user, $0.since) }, title: "BLOCKED SINCE")
    }
  }
}
