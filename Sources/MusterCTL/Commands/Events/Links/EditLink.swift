import ArgumentParser
import MusterKit

struct EditLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Change a share link. Its URL stays the same, and guests who have joined stay.",
    discussion: """
        musterctl events links edit pasta 4902ab --kind view
        musterctl events links edit pasta 4902ab --no-approval --clear max-guests
      """)

  enum Field: String, ExpressibleByArgument, CaseIterable {
    case expires
    case maxGuests = "max-guests"
  }

  @OptionGroup var event: EventArgument
  @OptionGroup var link: LinkArgument
  @OptionGroup var rules: LinkRules

  @Option(help: ArgumentHelp("Remove this limit. May be repeated.", valueName: "field"))
  var clear: [Field] = []

  @OptionGroup var options: AccountOptions

  func validate() throws {
    let given: [Field?] = [rules.expires.map { _ in .expires }, rules.maxGuests.map { _ in .maxGuests }]
    guard let both = given.compactMap({ $0 }).first(where: clear.contains) else { return }
    throw ValidationError("The field \(both.rawValue) cannot be both set and cleared.")
  }

  func run(as account: Account, on console: Console) async throws {
    var edit = try rules.edit()
    if clear.contains(.expires) { edit.expiresAt = .clear }
    if clear.contains(.maxGuests) { edit.maxGuests = .clear }
    guard edit != ShareLinkEdit() else {
      throw Failure.usage("Specify what to change. See `musterctl events links edit --help`.")
    }
    let event = try await account.event(named: event.name)
    let id = try await account.link(named: link.name, to: event).id
    let reply = try await account.responses.reply {
      try await account.client.events.links.edit(id, of: event.id, applying: edit)
    }
    try console.show(reply) { "Changed the link to \(EventText(event: event).name): \($0.rulesText)." }
  }
}
