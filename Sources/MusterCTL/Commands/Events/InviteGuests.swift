import ArgumentParser
import MusterKit

struct InviteGuests: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite", abstract: "Invite friends to an event that you host.",
    discussion: """
        musterctl events invite pasta ben cleo
      """)

  @OptionGroup var event: EventArgument

  @Argument(help: ArgumentHelp("The friends' usernames.", valueName: "username"))
  var usernames: [String]

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let friends = try await account.friends(named: usernames)
    let reply = try await account.responses.reply {
      try await account.client.events.invite(friends.map(\.id), to: event.id)
    }
    let names = friends.map(\.fullName).joined(separator: ", ")
    try console.show(reply) { "Invited \(names) to \(EventText(event: $0).name)." }
  }
}
