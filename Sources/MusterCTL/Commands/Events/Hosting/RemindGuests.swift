import ArgumentParser
import MusterKit

struct RemindGuests: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remind", abstract: "Remind the guests who have not answered, each at most once a day.")

  @OptionGroup var event: EventArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let name = EventText(event: event).name
    let reply = try await account.responses.reply { try await account.client.events.remindGuests(of: event.id) }
    try console.show(reply) { reminded in
      switch reminded {
      case 0: "No guest of \(name) needs a reminder: all have answered, or were reminded within a day."
      case 1: "Reminded 1 guest of \(name)."
      default: "Reminded \(reminded) guests of \(name)."
      }
    }
  }
}
