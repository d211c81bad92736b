import ArgumentParser
import MusterKit

struct FriendsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "friends", abstract: "List your friends, or end a friendship.",
    subcommands: [List.self, Remove.self], defaultSubcommand: List.self)

  struct List: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "List your friends, newest first.")

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let reply = try await account.responses.pages { try await account.client.friends.list(limit: $0, cursor: $1) }
      try console.show(reply, orNote: "You have no friends here yet. Use `musterctl requests send USERNAME`.") {
        Table.people($0.map { ($0.user, $0.since) }, title: "FRIENDS SINCE")
      }
    }
  }

  struct Remove: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "End a friendship. The other user is not notified.")

    @OptionGroup var user: UserArgument
    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let friend = try await account.friends(named: [user.name])[0]
      let reply = try await account.responses.reply { try await account.client.friends.end(with: friend.id) }
      try console.show(reply) { "You and \(friend.fullName) are no longer friends." }
    }
  }
}
