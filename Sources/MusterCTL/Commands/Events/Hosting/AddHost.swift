import ArgumentParser
import MusterKit

struct AddHost: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Ask a friend or a guest to be a co-host. They accept with `musterctl proposals accept`.",
    discussion: """
        musterctl events hosts add pasta ben
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var user: UserArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let person = try await account.user(named: user.name)
    let reply = try await account.responses.reply {
      try await account.client.events.addHost(person.id, to: event.id)
    }
    try console.show(reply) { "Asked \(person.fullName) to host \(EventText(event: $0).name)." }
  }
}
