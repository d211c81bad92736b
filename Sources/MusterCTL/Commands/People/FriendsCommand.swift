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

    @Argument(help: .username, completion: .friends)
    var user: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let friend = try await account.friends(named: [user])[0]
      let reply = try await account.responses.reply { try await account.client.friends.end(with: friend.id) }
      try console.show(reply) { "You and \(friend.fullName) are no longer friends." }
    }
  }
}

struct FindCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "find", abstract: "Find users by name. Without a name, suggest friends of your friends.")

  @Argument(help: "A username or a display name, or a part of one. Typos and accents are ignored.")
  var query: String?

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    if let query {
      let reply = try await account.responses.reply { try await account.client.users.search(for: query, limit: 50) }
      try console.show(reply, orNote: "No user has a name like this.") { people in
        Table(
          [
            .init("USERNAME"), .init("NAME", .flexible), .init("FRIENDS", .optional),
            .init("FRIENDS IN COMMON", .optional),
          ],
          rows: people.map {
            [.init($0.username), .init($0.displayName), .init($0.friendship.words), .init("\($0.mutualFriendCount)")]
          })
      }
    } else {
      let reply = try await account.responses.reply { try await account.client.users.recommended(limit: 50) }
      try console.show(reply, orNote: "There are no suggestions.") { recommendations in
        Table(
          [.init("USERNAME"), .init("NAME", .flexible), .init("FRIENDS IN COMMON", .optional)],
          rows: recommendations.map {
            [.init($0.user.username), .init($0.user.displayName), .init("\($0.mutualFriendCount)")]
          })
      }
    }
  }
}

extension Friendship {
  /// For a table of users.
  fileprivate var words: String {
    switch self {
    case .none: ""
    case .friends: "yes"
    case .requested: "you have asked"
    case .requesting: "asks you"
    default: rawValue
    }
  }
}
