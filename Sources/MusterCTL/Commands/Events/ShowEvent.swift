import ArgumentParser
import MusterKit

struct ShowEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show an event with its first 20 guests.")

  @OptionGroup var event: EventArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event.name).id
    let reply = try await account.responses.reply { try await account.client.events.get(id) }
    try console.show(reply) { console.lines(of: $0) }
  }
}
