import ArgumentParser
import MusterKit

struct JoinCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "join", abstract: "Join an event through a share link. Then answer it.",
    discussion: """
        musterctl join https://muster.example/e/AaBb...
        musterctl answer pasta going
      """)

  @Argument(help: "The link, or its last part.")
  var link: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    guard let token = LinkMatch.token(in: link) else { throw Failure.usage("\"\(link)\" is not a share link.") }
    let reply = try await account.responses.reply { try await account.client.links.join(using: token) }
    try console.show(reply) { event in
      let name = EventText(event: event).name
      return switch event.myStatus {
      case .invited: "You are invited to \(name). Answer with `musterctl answer`."
      case .pending: "You have asked to join \(name). A host decides."
      default: "You are already a guest of \(name): \(event.myAnswer)."
      }
    }
  }
}
