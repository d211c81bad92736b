import ArgumentParser
import MusterKit

struct CancelEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Cancel an event that you host, for good. Guests are notified.",
    discussion: "Asks first. Without a terminal, --yes is required.")

  @OptionGroup var event: EventArgument

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let name = EventText(event: event).name
    try Prompt.confirm("Cancel \(name.safeLine)?", isConfirmed: yes, refusal: "Nothing was cancelled.")
    let reply = try await account.responses.reply { try await account.client.events.cancel(event.id) }
    try console.show(reply) { _ in "Cancelled \(name)." }
  }
}
