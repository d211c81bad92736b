import ArgumentParser
import MusterKit

extension Answer: ExpressibleByArgument {}

struct AnswerCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer", abstract: "Answer an invitation. You may change your answer.",
    discussion: """
        musterctl answer pasta going
        musterctl answer pasta going --plus-ones 2
      """)

  @Argument(help: .event, completion: .invitations)
  var event: String

  @Argument(help: ArgumentHelp("Your answer.", valueName: "answer"))
  var answer: Answer

  @Option(
    name: [.long, .customLong("plus")],
    help: ArgumentHelp("How many people you bring along, if the event allows it.", valueName: "number"))
  var plusOnes: Int?

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let reply = try await account.responses.reply {
      try await account.client.events.answer(answer, to: event.id, plusOnes: plusOnes)
    }
    try console.show(reply) { event in
      let name = EventText(event: event).name
      let others = event.myPlusOnes == 1 ? ", with 1 other" : ", with \(event.myPlusOnes) others"
      let group = event.myPlusOnes > 0 ? others : ""
      return switch event.myStatus {
      case .going: "You are going to \(name)\(group)."
      case .maybe: "You might come to \(name)\(group)."
      case .declined: "You are not going to \(name)."
      case .waitlisted where event.myPlusOnes > 0:
        "Not enough places are free. You are on the waiting list for \(name)\(group)."
      case .waitlisted: "No place is free. You are on the waiting list for \(name)."
      default: "Your answer to \(name) is: \(event.myStatus.text)."
      }
    }
  }
}

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
