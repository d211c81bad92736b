import ArgumentParser
import MusterKit

struct ListGuests: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "guests", abstract: "List all guests of an event.")

  @OptionGroup var event: EventArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event.name).id
    let reply = try await account.responses.pages {
      try await account.client.events.guests(of: id, limit: $0, cursor: $1)
    }
    try console.show(reply, orNote: "There are no guests.") { Table.guests($0) }
  }
}
