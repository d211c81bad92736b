import ArgumentParser
import MusterClient

struct RevokeLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke a share link for good. Guests who have joined stay.")

  @OptionGroup var event: EventArgument

  @Argument(help: ArgumentHelp("The link: its URL, its id, or the beginning or end of the id.", valueName: "link"))
  var link: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event.name)
    let links = try await account.client.events.links.list(of: event.id)
    let found = LinkMatch.candidates(for: link, in: links)
    guard let only = found.first, found.count == 1 else {
      let reason = found.isEmpty ? "has no link" : "has several links"
      throw Failure.refused("“\(event.title)” \(reason) \"\(link)\". `musterctl events links list` lists them.")
    }
    let reply = try await account.responses.reply {
      try await account.client.events.links.revoke(only.id, of: event.id)
    }
    try console.show(reply) { "Revoked the link to \(EventText(event: event).name)." }
  }
}
