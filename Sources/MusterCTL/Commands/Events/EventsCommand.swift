import ArgumentParser
import MusterKit

struct EventsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "List, show and plan events.",
    discussion: """
        musterctl events
        musterctl events show pasta
        musterctl events create "Pasta night" tomorrow 19:00 --invite ben --invite cleo
        musterctl events edit pasta --time "fri 20:00"
        musterctl events cancel pasta
      """,
    subcommands: [
      ListEvents.self, PastEvents.self, ShowEvent.self, CreateEvent.self, EditEvent.self, InviteGuests.self,
      WithdrawInvitation.self, ListGuests.self, ApproveGuest.self, RemindGuests.self, AnswerForGuest.self,
      HostsCommand.self, LinksCommand.self, DuplicateEvent.self, CancelEvent.self,
    ],
    defaultSubcommand: ListEvents.self)
}

struct ListEvents: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the events that you host or are invited to, the next one first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.events.list(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "No events.") { Table.events($0) }
  }
}

struct PastEvents: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "past", abstract: "List events that are over, the latest first.")

  @Option(help: ArgumentHelp("The maximum number of events.", valueName: "number"))
  var limit = 50

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard (1...10_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 10000.") }
  }

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages(limit: limit) {
      try await account.client.events.past(limit: $0, cursor: $1)
    }
    try console.show(reply, orNote: "No past events.") { Table.events($0) }
  }
}

struct ShowEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show an event with its first 20 guests.")

  @Argument(help: .event, completion: .events)
  var event: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event).id
    let reply = try await account.responses.reply { try await account.client.events.get(id) }
    try console.show(reply) { console.lines(of: $0) }
  }
}

struct ListGuests: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "guests", abstract: "List all guests of an event.")

  @Argument(help: .event, completion: .events)
  var event: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let id = try await account.event(named: event).id
    let reply = try await account.responses.pages {
      try await account.client.events.guests(of: id, limit: $0, cursor: $1)
    }
    try console.show(reply, orNote: "There are no guests.") { Table.guests($0) }
  }
}

struct CancelEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Cancel an event that you host, for good. Guests are notified.",
    discussion: "Asks first. Without a terminal, --yes is required.")

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let name = EventText(event: event).name
    try Prompt.confirm("Cancel \(name.safeLine)?", isConfirmed: yes, refusal: "Nothing was cancelled.")
    let reply = try await account.responses.reply { try await account.client.events.cancel(event.id) }
    try console.show(reply) { _ in "Cancelled \(name)." }
  }
}
