import ArgumentParser
import MusterKit

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
          [.init("USERNAME"), .init("NAME", .flexible)],
          rows: people.map { [.init($0.username), .init($0.displayName)] })
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
