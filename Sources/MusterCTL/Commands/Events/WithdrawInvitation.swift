import ArgumentParser
import MusterKit

struct WithdrawInvitation: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "withdraw", abstract: "Take back a guest's invitation, turn a guest away, or remove a visitor.",
    discussion: """
      A guest with an account is notified. A visitor's page is gone.

        musterctl events withdraw pasta ben
        musterctl events withdraw pasta Zoe
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var guest: GuestArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let guest = try await account.guest(named: guest.name, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.withdraw(guest.id, from: event.id)
    }
    let state = guest.user == nil ? "a guest of" : "invited to"
    try console.show(reply) { "\(guest.fullName) is no longer \(state) \(EventText(event: $0).name)." }
  }
}
