import ArgumentParser
import Foundation
import MusterKit

struct CreateLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a share link, and print it.",
    discussion: """
      Anyone who has the link sees the page of the event. Through a link of kind answer, the default, visitors also \
      answer on the page, and users join. A host approves each of them, unless the link has --no-approval. It works \
      until the event is archived, or until --expires.

        musterctl events links create pasta --max-guests 10
        musterctl events links create pasta --plus-ones 2 --email required --no-approval
        musterctl events links create pasta --kind view --shows names --expires "fri 12:00"
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var rules: LinkRules
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let draft = try rules.draft()
    let reply = try await account.responses.reply {
      try await account.client.events.links.create(draft, for: event.id)
    }
    // Alone on its line, to copy or pipe it.
    try console.show(reply) { $0.url?.absoluteString ?? "The link has no URL: the service has lost its key." }
  }
}
