import ArgumentParser
import MusterClient

struct RevokeLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke a share link for good. Guests who have joined stay.")

  @OptionGroup var event: EventArgument
  @OptionGroup var link: LinkArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event.name)
    let id = try await account.link(named: link.name, to: event).id
    let reply = try await account.responses.reply {
      try await account.client.events.links.revoke(id, of: event.id)
    }
    try console.show(reply) { "Revoked the link to \(EventText(event: event).name)." }
  }
}
