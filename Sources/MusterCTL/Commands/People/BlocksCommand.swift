import ArgumentParser
import MusterKit

struct BlocksCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "blocks", abstract: "List the users whom you have blocked, newest first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.blocks.list(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "You have not blocked any users.") {
      Table.people($0.map { ($0.user, $0.since) }, title: "BLOCKED SINCE")
    }
  }
}

struct BlockCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "block", abstract: "Block a user.",
    discussion: """
      Ends friendship, requests and invitations between you two, and hides each from the other. The user is not \
      notified.
      """)

  @Argument(help: .username, completion: .anyone)
  var user: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let person = try await account.user(named: user)
    let reply = try await account.responses.reply { try await account.client.blocks.block(person.id) }
    try console.show(reply) { "Blocked \(person.fullName)." }
  }
}

struct UnblockCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "unblock", abstract: "Unblock a user. Friendship and invitations do not come back.")

  @Argument(help: .username, completion: .blocked)
  var user: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let blocks = try await account.responses.pages { try await account.client.blocks.list(limit: $0, cursor: $1) }.value
    let person = try account.person(
      named: user, in: blocks.map(\.user), "You have not blocked \"\(user)\".",
      otherwise: "`musterctl blocks` lists the users whom you have blocked.")
    let reply = try await account.responses.reply { try await account.client.blocks.unblock(person.id) }
    try console.show(reply) { "Unblocked \(person.fullName)." }
  }
}
