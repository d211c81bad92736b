import ArgumentParser
import MusterKit

struct BlockCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "block", abstract: "Block a user.",
    discussion: """
      Ends friendship, requests and invitations between you two, and hides each from the other. The user is not \
      notified.
      """)

  @OptionGroup var user: UserArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let person = try await account.user(named: user.name)
    let reply = try await account.responses.reply { try await account.client.blocks.block(person.id) }
    try console.show(reply) { "Blocked \(person.fullName)." }
  }
}
