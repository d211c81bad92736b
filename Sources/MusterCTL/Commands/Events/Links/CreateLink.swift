import ArgumentParser
import Foundation
import MusterClient

struct CreateLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a share link, and print it.",
    discussion: """
      Anyone who has the link sees the page of the event. With a link of kind answer, others can also join. It works \
      until the event is archived, or until --expires.

        musterctl events links create pasta --max-guests 10
        musterctl events links create pasta --kind view --shows names --expires "fri 12:00"
      """)

  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case answer, view
  }

  enum Shows: String, ExpressibleByArgument, CaseIterable {
    case counts, names
  }

  @OptionGroup var event: EventArgument

  @Option(help: ArgumentHelp("Whether others can join, or only look.", valueName: "kind"))
  var kind = Kind.answer

  @Option(help: ArgumentHelp("What the page shows of the guests: their counts, or also names.", valueName: "what"))
  var shows = Shows.counts

  @Option(help: ArgumentHelp("When the link ends.", valueName: "time"))
  var expires: String?

  @Option(help: ArgumentHelp("How many guests may join by the link.", valueName: "number"))
  var maxGuests: Int?

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let end = try expires.map(PlannedTime(zoneNamed: nil).start)
    let draft = ShareLinkDraft(
      kind: ShareLink.Kind(rawValue: kind.rawValue), shows: ShareLink.Shows(rawValue: shows.rawValue), expiresAt: end,
      maxGuests: maxGuests)
    let reply = try await account.responses.reply {
      try await account.client.events.links.create(draft, to: event.id)
    }
    // Alone on its line, to copy or pipe it.
    try console.show(reply) { $0.url?.absoluteString ?? "The link has no URL: the service has lost its key." }
  }
}
