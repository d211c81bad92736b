import ArgumentParser
import MusterKit

struct ApproveGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve a guest who came through a share link that needs approval.",
    discussion: """
      A user may then answer. A visitor's answer takes effect immediately. To turn a guest away, withdraw them.

        musterctl events guests pasta
        musterctl events approve pasta Zoe
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var guest: GuestArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let guest = try await account.guest(named: guest.name, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.approve(guest.id, at: event.id)
    }
    try console.show(reply) { "Approved \(guest.fullName) as a guest of \(EventText(event: $0).name)." }
  }
}
