import ArgumentParser
import MusterKit

struct ListLinks: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the share links of an event that you host, oldest first.")

  @OptionGroup var event: EventArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event.name).id
    let reply = try await account.responses.reply { try await account.client.events.links.list(of: id) }
    try console.show(reply, orNote: "There are no links. `musterctl events links create` creates one.") {
      Table.links($0)
    }
  }
}
