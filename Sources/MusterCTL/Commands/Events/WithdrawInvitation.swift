import ArgumentParser
import MusterClient

struct WithdrawInvitation: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "withdraw", abstract: "Take back a guest's invitation. The guest is notified.")

  @OptionGroup var event: EventArgument
  @OptionGroup var user: UserArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let guest = try await account.guest(named: user.name, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.withdraw(guest.id, from: event.id)
    }
    try console.show(reply) { "\(guest.fullName) is no longer invited to \(EventText(event: $0).name)." }
  }
}
