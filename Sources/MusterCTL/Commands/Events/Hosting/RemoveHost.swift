import ArgumentParser
import MusterKit

struct RemoveHost: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a co-host, or leave an event that you co-host.")

  @OptionGroup var event: EventArgument
  @OptionGroup var user: UserArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    guard let host = event.hosts.first(where: { $0.isNamed(user.name) }) else {
      throw Failure.refused("\"\(user.name)\" is not a host of “\(event.title)”.")
    }
    let reply = try await account.responses.reply {
      try await account.client.events.removeHost(host.id, from: event.id)
    }
    try console.show(reply) { "\(host.fullName) is no longer a host of \(EventText(event: event).name)." }
  }
}
