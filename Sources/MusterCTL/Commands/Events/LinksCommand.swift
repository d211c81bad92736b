import ArgumentParser
import Foundation
import MusterKit

struct LinksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "links", abstract: "Manage the share links of an event that you host.",
    discussion: """
      A link leads to a page about the event, which needs no account.

        musterctl events links create pasta
        musterctl events links create pasta --kind view --expires "fri 12:00"
        musterctl events links list pasta
        musterctl events links edit pasta 4902ab --approval
        musterctl events links revoke pasta 4902ab
      """,
    subcommands: [ListLinks.self, CreateLink.self, EditLink.self, RevokeLink.self])
}

struct ListLinks: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the share links of an event that you host, oldest first.")

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event).id
    let reply = try await account.responses.reply { try await account.client.events.links.list(of: id) }
    try console.show(reply, orNote: "There are no links. `musterctl events links create` creates one.") {
      Table.links($0)
    }
  }
}

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

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @OptionGroup var rules: LinkRules
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let draft = try rules.draft()
    let reply = try await account.responses.reply {
      try await account.client.events.links.create(draft, for: event.id)
    }
    // Alone on its line, to copy or pipe it.
    try console.show(reply) { $0.url?.absoluteString ?? "The link has no URL: the service has lost its key." }
  }
}

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

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

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
    let event = try await account.event(named: event)
    let id = try await account.link(named: link.name, to: event).id
    let reply = try await account.responses.reply {
      try await account.client.events.links.edit(id, of: event.id, applying: edit)
    }
    try console.show(reply) { "Changed the link to \(EventText(event: event).name): \($0.rulesText)." }
  }
}

struct RevokeLink: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revoke a share link for good. Guests who have joined stay, unless you remove them.")

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @OptionGroup var link: LinkArgument
  @Flag(help: "Also remove the visitors who came through the link. Users who joined stay.")
  var removeVisitors = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event)
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

/// The rules of a share link, as options.
struct LinkRules: ParsableArguments {
  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case answer, view
  }

  enum Shows: String, ExpressibleByArgument, CaseIterable {
    case counts, names
  }

  enum Email: String, ExpressibleByArgument, CaseIterable {
    case required, optional, none
  }

  @Option(help: ArgumentHelp("Whether others can answer and join, or only look.", valueName: "kind"))
  var kind: Kind?

  @Option(help: ArgumentHelp("What the page shows of the guests: their counts, or also names.", valueName: "what"))
  var shows: Shows?

  @Option(help: ArgumentHelp("When the link ends.", valueName: "time"))
  var expires: String?

  @Option(help: ArgumentHelp("The maximum number of guests who may join through the link.", valueName: "number"))
  var maxGuests: Int?

  @Option(help: ArgumentHelp("How many people each visitor may bring along, at most 10.", valueName: "number"))
  var plusOnes: Int?

  @Option(help: ArgumentHelp("Whether the page asks visitors for an e-mail address.", valueName: "rule"))
  var email: Email?

  @Flag(inversion: .prefixedNo, help: "Whether a host approves each guest first, as for a new link by default.")
  var approval: Bool?

  /// A new link. Options that are not given have the service's defaults.
  func draft() throws -> ShareLinkDraft {
    ShareLinkDraft(
      kind: ShareLink.Kind(rawValue: (kind ?? .answer).rawValue),
      shows: ShareLink.Shows(rawValue: (shows ?? .counts).rawValue), expiresAt: try end(), maxGuests: maxGuests,
      maxPlusOnes: plusOnes, email: email.map { ShareLink.Email(rawValue: $0.rawValue) }, approval: approval)
  }

  /// A change. Options that are not given change nothing.
  func edit() throws -> ShareLinkEdit {
    ShareLinkEdit(
      kind: kind.map { ShareLink.Kind(rawValue: $0.rawValue) },
      shows: shows.map { ShareLink.Shows(rawValue: $0.rawValue) }, expiresAt: try end().map { .set($0) } ?? .keep,
      maxGuests: maxGuests.map { .set($0) } ?? .keep, maxPlusOnes: plusOnes,
      email: email.map { ShareLink.Email(rawValue: $0.rawValue) }, approval: approval)
  }

  private func end() throws -> Date? { try expires.map(PlannedTime(zoneNamed: nil).start) }
}
