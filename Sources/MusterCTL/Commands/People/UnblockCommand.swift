import ArgumentParser
import MusterKit

struct UnblockCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "unblock", abstract: "Unblock a user. Friendship and invitations do not come back.")

  @OptionGroup var user: UserArgument
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let blocks = try await account.responses.pages { try await account.client.blocks.list(limit: $0, cursor: $1) }.value
    guard let person = blocks.map(\.user).first(where: { $0.isNamed(user.name) }) else {
      throw Failure.refused("You have not blocked \"\(user.name)\".")
    }
    let reply = try await account.responses.reply { try await account.client.blocks.unblock(person.id) }
    try console.show(reply) { "Unblocked \(person.fullName)." }
  }
}
