import ArgumentParser
import Foundation
import MusterKit

struct RevokeLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revoke a share link for good. Guests who have joined stay, unless you remove them.")

  @OptionGroup var event: EventArgument
  @OptionGroup var link: LinkArgument
  @Flag(help: "Also remove the visitors who came through the link. Users who joined stay.")
  var removeVisitors = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event.name)
    // The service lists no link that was revoked before, but can still remove its visitors.
    let id: ShareLink.ID
    if let known = ShareLink.ID(link.name) {
      id = known
    } else {
      id = try await account.link(named: link.name, to: event).id
    }
    let reply = try await account.responses.reply {
      try await account.client.events.links.revoke(id, of: event.id, removingVisitors: removeVisitors)
    }
    try console.show(reply) {
      "Revoked the link to \(EventText(event: event).name)\(removeVisitors ? ", and removed its visitors" : "")."
    }
  }
}
