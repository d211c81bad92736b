import ArgumentParser
import MusterKit

struct PrivacyCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "privacy", abstract: "Show or change who may send you friend requests, and who finds you.",
    discussion: """
        musterctl privacy
        musterctl privacy --requests-from friends-of-friends
        musterctl privacy --findable-by no-one
      """)

  enum Choice: String, ExpressibleByArgument, CaseIterable {
    case everyone
    case friendsOfFriends = "friends-of-friends"
    case noOne = "no-one"

    var audience: Audience { Audience(rawValue: rawValue) }
  }

  @Option(help: ArgumentHelp("Who may send you friend requests.", valueName: "who"))
  var requestsFrom: Choice?

  @Option(help: ArgumentHelp("Who finds you in searches and suggestions, besides your friends.", valueName: "who"))
  var findableBy: Choice?

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let edit = ProfileEdit(requestsFrom: requestsFrom?.audience, findableBy: findableBy?.audience)
    let reply = try await account.responses.reply {
      edit == ProfileEdit() ? try await account.client.me.get() : try await account.client.me.edit(edit)
    }
    try console.show(reply) { user in
      console.lines(of: [
        ("Friend requests from", (user.requestsFrom ?? .everyone).rawValue),
        ("Found by", (user.findableBy ?? .everyone).rawValue),
      ])
    }
  }
}
